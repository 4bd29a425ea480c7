"""The rules of a campaign: nine types, the operators that each takes, and the values that make sense."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, cast

import msgspec

from adloom.core.errors import BadRequestError, FieldProblem, ValidationFailedError, make_field_error
from adloom.targeting.values import (
    DEVICES,
    SEGMENT_CHARACTERS_MAX,
    normalize_country,
    normalize_device,
    normalize_domain,
    normalize_language,
    normalize_segment,
)

VALUES_MAX: Final = 1_000  # A longer list is refused: it belongs into a segment.
HOURS_A_DAY: Final = 24
DAYS_A_WEEK: Final = 7
ENDS_OF_A_SPAN: Final = 2
SHOWN_CHARACTERS_MAX: Final = 60


class RuleType(StrEnum):
    """What a rule asks about."""

    DEVICE = "device"
    COUNTRY = "country"
    USER_SEGMENT = "user_segment"
    LOGIN_STATE = "login_state"
    LANGUAGE = "language"
    HOUR_OF_DAY = "hour_of_day"
    DAY_OF_WEEK = "day_of_week"
    NEW_VISITOR = "new_visitor"
    REFERRER_DOMAIN = "referrer_domain"


class Operator(StrEnum):
    """How a rule compares."""

    IN = "in"
    NOT_IN = "not_in"
    IS = "is"
    BETWEEN = "between"


_LISTS: Final = (Operator.IN, Operator.NOT_IN)

OPERATORS: Final[dict[RuleType, tuple[Operator, ...]]] = {
    RuleType.DEVICE: _LISTS,
    RuleType.COUNTRY: _LISTS,
    RuleType.USER_SEGMENT: _LISTS,
    RuleType.LOGIN_STATE: (Operator.IS,),
    RuleType.LANGUAGE: _LISTS,
    RuleType.HOUR_OF_DAY: (Operator.BETWEEN, *_LISTS),
    RuleType.DAY_OF_WEEK: _LISTS,
    RuleType.NEW_VISITOR: (Operator.IS,),
    RuleType.REFERRER_DOMAIN: _LISTS,
}

Value = str | int  # A boolean of `is` is an int too.


class Rule(msgspec.Struct, frozen=True):
    """One condition in its normal form; made by `parse_rule` only.

    `values` are the list of `in` and `not_in`, the two ends of `between`, the one boolean of `is`.
    """

    rule_type: RuleType
    operator: Operator
    values: tuple[Value, ...]

    @property
    def json_value(self) -> bool | list[Value]:
        """The value as the API shows and takes it."""
        return bool(self.values[0]) if self.operator is Operator.IS else list(self.values)


def parse_rule(rule_type: str, operator: str, value: object) -> Rule:
    """Parse a rule; the error says what is allowed instead."""
    kind = _parse_rule_type(rule_type)
    comparison = _parse_operator(kind, operator)
    match comparison:
        case Operator.IS:
            values = _parse_boolean(value)
        case Operator.BETWEEN:
            values = _parse_span(value)
        case Operator.IN | Operator.NOT_IN:
            values = _parse_list(kind, value)
    return Rule(kind, comparison, values)


def _parse_rule_type(rule_type: str) -> RuleType:
    try:
        return RuleType(rule_type)
    except ValueError:
        message = f"{show_value(rule_type)} is not a rule type; it is one of {', '.join(RuleType)}."
        raise make_field_error("ruleType", message, message) from None


def _parse_operator(rule_type: RuleType, operator: str) -> Operator:
    allowed = OPERATORS[rule_type]
    if operator not in allowed:
        message = f"A {rule_type} rule takes {' or '.join(allowed)}, not {show_value(operator)}."
        raise BadRequestError(
            message, errors=[FieldProblem("operator", message)], code="TARGETING_RULE_INVALID_OPERATOR"
        )
    return Operator(operator)


def _parse_boolean(value: object) -> tuple[Value, ...]:
    if not isinstance(value, bool):
        raise _make_wrong_error(f"The value of `is` must be true or false, not {show_value(value)}.")
    return (value,)


def _parse_span(value: object) -> tuple[Value, ...]:
    ends = _take_sequence(value)
    if ends is None or len(ends) != ENDS_OF_A_SPAN:
        raise _make_wrong_error(
            "The value of `between` must be a pair of hours, the first and the last: "
            f"[9, 17], or [22, 5] across midnight; not {show_value(value)}."
        )
    return tuple(_parse_value(RuleType.HOUR_OF_DAY, end) for end in ends)


def _parse_list(rule_type: RuleType, value: object) -> tuple[Value, ...]:
    words = _take_sequence(value)
    if not words:
        raise _make_wrong_error(
            f"The value of `in` and `not_in` must be a list of at least one entry, not {show_value(value)}."
        )
    if len(words) > VALUES_MAX:
        raise _make_wrong_error(f"The list has {len(words)} entries; a rule takes at most {VALUES_MAX}.")
    return tuple(dict.fromkeys(_parse_value(rule_type, word) for word in words))


def _parse_value(rule_type: RuleType, word: object) -> Value:
    read, allowed = _PARSERS[rule_type]
    value = read(word)
    if value is None:
        raise _make_wrong_error(f"{show_value(word)} is not {allowed}.")
    return value


def _make_text_reader(normalise: Callable[[str], str | None]) -> Callable[[object], Value | None]:
    return lambda word: normalise(word) if isinstance(word, str) else None


def _make_number_reader(below: int) -> Callable[[object], Value | None]:
    def read(word: object) -> Value | None:
        if isinstance(word, bool) or not isinstance(word, int | float) or not 0 <= word < below:
            return None
        return int(word) if word == int(word) else None  # As JSON Schema has it, 9.0 is an integer.

    return read


_PARSERS: Final[dict[RuleType, tuple[Callable[[object], Value | None], str]]] = {
    RuleType.DEVICE: (_make_text_reader(normalize_device), f"a device: it is one of {', '.join(DEVICES)}"),
    RuleType.COUNTRY: (
        _make_text_reader(normalize_country),
        "a country: write the two letters of ISO 3166, such as DE",
    ),
    RuleType.USER_SEGMENT: (
        _make_text_reader(normalize_segment),
        f"a segment: write its name, a text of 1 to {SEGMENT_CHARACTERS_MAX} characters",
    ),
    RuleType.LANGUAGE: (
        _make_text_reader(normalize_language),
        "a language: write its two or three letters, such as de",
    ),
    RuleType.HOUR_OF_DAY: (_make_number_reader(HOURS_A_DAY), "an hour: write a whole number from 0 to 23"),
    RuleType.DAY_OF_WEEK: (
        _make_number_reader(DAYS_A_WEEK),
        "a day of the week: write a whole number from 0 (Sunday) to 6 (Saturday)",
    ),
    RuleType.REFERRER_DOMAIN: (
        _make_text_reader(normalize_domain),
        "a domain: write it without https://, path or asterisk, such as example.com; it includes subdomains",
    ),
}


def _take_sequence(value: object) -> Sequence[object] | None:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else None


def _make_wrong_error(message: str) -> ValidationFailedError:
    return make_field_error("value", message, message)


def show_value(value: object) -> str:
    """Write a value in JSON as its author did, cut if it is long."""
    try:
        written = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):
        written = repr(value)
    return written if len(written) <= SHOWN_CHARACTERS_MAX else written[:SHOWN_CHARACTERS_MAX] + "…"
