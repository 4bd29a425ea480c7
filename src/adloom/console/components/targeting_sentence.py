"""Targeting rules as one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from adloom.console import strings
from adloom.console.countries import COUNTRIES, LANGUAGES

# In the order of speech: where, on what, to whom, when.
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
    "country": ("in {names}", "outside {names}"),
    "device": ("on {names}", "not on {names}"),
    "language": ("to readers of {names}", "not to readers of {names}"),
    "user_segment": ("to the segment {names}", "not to the segment {names}"),
    "referrer_domain": ("to visitors from {names}", "not to visitors from {names}"),
    "day_of_week": ("on {names}", "not on {names}"),
    "hour_of_day": ("in the hours {names}", "not in the hours {names}"),
}
_FLAGS: Final = {
    "login_state": ("not to logged-in readers", "to logged-in readers"),
    "new_visitor": ("to returning visitors", "to new visitors"),
}

Rule = Mapping[str, Any]


def describe_rules(rules: Sequence[Rule]) -> str:
    """Describe who sees a campaign with these rules; rules that are off do not count."""
    active = [rule for rule in rules if rule.get("isActive", True)]
    active.sort(key=lambda rule: ORDER.index(rule["ruleType"]))
    sentence = "Shown to everyone, everywhere, at any time."
    if active:
        sentence = strings.SHOWN_TO.format(parts=", ".join(describe_rule(rule) for rule in active))
    off = len(rules) - len(active)
    if not off:
        return sentence
    note = "One condition is switched off." if off == 1 else f"{off} conditions are switched off."
    return f"{sentence} {note}"


def describe_rule(rule: Rule) -> str:
    kind, operator, value = rule["ruleType"], rule["operator"], rule["value"]
    if operator == "is":
        return _FLAGS[kind][bool(value)]
    if operator == "between":
        return f"from {value[0]}:00 to {value[1]}:59"
    if kind == "day_of_week" and operator == "in":
        span = _span(value)
        if span:
            return span
    names = [_name(kind, one) for one in value]
    is_in = operator == "in"
    # "Outside Germany and Austria", but "not on phones or tablets".
    joins = "{before} and {last}" if kind == "country" and not is_in else "{before} or {last}"
    return _LISTS[kind][0 if is_in else 1].format(names=_join(names, joins))


def _span(days: Sequence[int]) -> str:
    """Describe consecutive days by the first and the last; empty if they are not consecutive."""
    if not SPAN_MIN <= len(days) < DAYS_A_WEEK:
        return ""
    there = set(days)
    firsts = [day for day in there if (day - 1) % DAYS_A_WEEK not in there]
    if len(firsts) != 1:
        return ""
    last = (firsts[0] + len(there) - 1) % DAYS_A_WEEK
    return f"from {strings.DAYS[firsts[0]]} to {strings.DAYS[last]}"


def _name(kind: str, value: Any) -> str:  # noqa: ANN401 - a text or a number
    match kind:
        case "country":
            return COUNTRIES.get(str(value), str(value))
        case "language":
            return LANGUAGES.get(str(value), str(value))
        case "device":
            return strings.DEVICES[value]
        case "day_of_week":
            return strings.DAYS[int(value)]
        case "user_segment":
            return f"“{value}”"
        case _:
            return str(value)


def _join(names: Sequence[str], joint: str) -> str:
    if len(names) == 1:
        return names[0]
    return joint.format(before=", ".join(names[:-1]), last=names[-1])
