"""Targeting rules in words: how each kind is named, entered and described, and all rules as one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from adloom.console import strings

DAYS_A_WEEK: Final = 7
SPAN_MIN: Final = 3

Rule = Mapping[str, Any]


class RuleWords(msgspec.Struct, frozen=True):
    """The words for one kind of rule. A flag has words for false and true, others for `in` and `not_in`."""

    label: str
    icon: str
    parts: tuple[str, str]
    values: str | tuple[str, str]  # The label of the field, or those of false and true.
    names: Mapping[Any, str] = msgspec.field(default_factory=dict[Any, str])


# In the order of speech: where, on what, to whom, when.
# fmt: off
RULE_WORDS: Final = {
    "country": RuleWords("Country", "public", ("in {names}", "outside {names}"), "Countries", strings.COUNTRIES),
    "device": RuleWords("Device", "devices", ("on {names}", "not on {names}"), "Devices", strings.DEVICES),
    "language": RuleWords("Language", "translate", ("to readers of {names}", "not to readers of {names}"),
                          "Languages", strings.LANGUAGES),
    "login_state": RuleWords("Logged in or not", "how_to_reg",
                             ("not to logged-in readers", "to logged-in readers"), ("Not logged in", "Logged in")),
    "new_visitor": RuleWords("New or returning", "waving_hand",
                             ("to returning visitors", "to new visitors"), ("Returning", "New")),
    "user_segment": RuleWords("Segment", "group_work", ("to the segment {names}", "not to the segment {names}"),
                              "Names of segments; press Enter after each"),
    "referrer_domain": RuleWords("Where readers come from", "link",
                                 ("to visitors from {names}", "not to visitors from {names}"),
                                 "Domains such as example.com; press Enter after each"),
    "day_of_week": RuleWords("Day of the week", "calendar_today", ("on {names}", "not on {names}"),
                             "Days", dict(enumerate(strings.DAYS))),
    "hour_of_day": RuleWords("Hour of the day", "schedule", ("in the hours {names}", "not in the hours {names}"),
                             "Hours"),
}
# fmt: on


def describe_rules(rules: Sequence[Rule]) -> str:
    """Describe who sees a campaign with these rules; rules that are off do not count."""
    active = [rule for rule in rules if rule.get("isActive", True)]
    active.sort(key=lambda rule: list(RULE_WORDS).index(rule["ruleType"]))
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
        return RULE_WORDS[kind].parts[bool(value)]
    if operator == "between":
        return f"from {value[0]}:00 to {value[1]}:59"
    if kind == "day_of_week" and operator == "in" and (span := _describe_span(value)):
        return span
    names = [_name(kind, one) for one in value]
    is_in = operator == "in"
    # "Outside Germany and Austria", but "not on phones or tablets".
    joins = "{before} and {last}" if kind == "country" and not is_in else "{before} or {last}"
    return RULE_WORDS[kind].parts[not is_in].format(names=_join(names, joins))


def _describe_span(days: Sequence[int]) -> str:
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
    return f"“{value}”" if kind == "user_segment" else RULE_WORDS[kind].names.get(value, str(value))


def _join(names: Sequence[str], joint: str) -> str:
    if len(names) == 1:
        return names[0]
    return joint.format(before=", ".join(names[:-1]), last=names[-1])
