"""What targeting rules mean, as one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from adloom.console.words import targeting as words
from adloom.console.words.countries import COUNTRIES, LANGUAGES

# In the order in which people say it: where, on what, to whom, when.
ORDER: Final = (
    "country",
    "device",
    "language",
    "login_state",
    "new_visitor",
    "user_segment",
    "referrer_domain",
    "day_of_week",
    "hour_of_day",
)
DAYS_A_WEEK: Final = 7
SPAN_MIN: Final = 3
_LISTS: Final = {
    "country": (words.IN_COUNTRIES, words.OUTSIDE_COUNTRIES),
    "device": (words.ON_DEVICES, words.NOT_ON_DEVICES),
    "language": (words.IN_LANGUAGES, words.NOT_IN_LANGUAGES),
    "user_segment": (words.TO_SEGMENTS, words.NOT_TO_SEGMENTS),
    "referrer_domain": (words.FROM_DOMAINS, words.NOT_FROM_DOMAINS),
    "day_of_week": (words.ON_DAYS, words.NOT_ON_DAYS),
    "hour_of_day": (words.IN_HOURS, words.NOT_IN_HOURS),
}
_FLAGS: Final = {
    "login_state": (words.NOT_LOGGED_IN, words.LOGGED_IN),
    "new_visitor": (words.RETURNING_VISITORS, words.NEW_VISITORS),
}

Rule = Mapping[str, Any]


def sentence_of(rules: Sequence[Rule]) -> str:
    """Say to whom a campaign with these rules is shown; rules that are switched off do not count."""
    active = [rule for rule in rules if rule.get("isActive", True)]
    active.sort(key=lambda rule: ORDER.index(rule["ruleType"]))
    sentence = words.TO_EVERYBODY
    if active:
        sentence = words.SHOWN.format(parts=", ".join(part_of(rule) for rule in active))
    off = len(rules) - len(active)
    if not off:
        return sentence
    return f"{sentence} {words.OFF_ONE if off == 1 else words.OFF_MANY.format(count=off)}"


def part_of(rule: Rule) -> str:
    """Say what one rule asks."""
    kind, operator, value = rule["ruleType"], rule["operator"], rule["value"]
    if operator == "is":
        return _FLAGS[kind][bool(value)]
    if operator == "between":
        return words.BETWEEN_HOURS.format(first=value[0], last=value[1])
    if kind == "day_of_week" and operator == "in":
        span = _span(value)
        if span:
            return span
    names = [_name(kind, one) for one in value]
    is_in = operator == "in"
    # «Outside Germany and Austria», but «not on phones or tablets».
    joins = words.AND if kind == "country" and not is_in else words.OR
    return _LISTS[kind][0 if is_in else 1].format(names=_joined(names, joins))


def _span(days: Sequence[int]) -> str:
    """Say days that follow each other by the first and the last of them."""
    if not SPAN_MIN <= len(days) < DAYS_A_WEEK:
        return ""
    there = set(days)
    firsts = [day for day in there if (day - 1) % DAYS_A_WEEK not in there]
    if len(firsts) != 1:
        return ""
    last = (firsts[0] + len(there) - 1) % DAYS_A_WEEK
    return words.FROM_DAY_TO_DAY.format(first=words.DAYS[firsts[0]], last=words.DAYS[last])


def _name(kind: str, value: Any) -> str:  # noqa: ANN401 - a text or a number
    match kind:
        case "country":
            return COUNTRIES.get(str(value), str(value))
        case "language":
            return LANGUAGES.get(str(value), str(value))
        case "device":
            return words.DEVICES[value]
        case "day_of_week":
            return words.DAYS[int(value)]
        case "user_segment":
            return f"«{value}»"
        case _:
            return str(value)


def _joined(names: Sequence[str], joint: str) -> str:
    if len(names) == 1:
        return names[0]
    return joint.format(before=", ".join(names[:-1]), last=names[-1])
