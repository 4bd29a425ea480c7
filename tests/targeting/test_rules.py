"""What is accepted as a rule, its normal form, and the error for everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import AdloomError, ValidationFailedError
from adloom.targeting.rules import (
    OPERATORS,
    VALUES_MAX,
    Operator,
    Rule,
    RuleType,
    parse_rule,
)
from tests.support.for_each import for_each
from tests.targeting.strategies import rules

ALLOWED = {
    "device": {"in", "not_in"},
    "country": {"in", "not_in"},
    "user_segment": {"in", "not_in"},
    "login_state": {"is"},
    "language": {"in", "not_in"},
    "hour_of_day": {"between", "in", "not_in"},
    "day_of_week": {"in", "not_in"},
    "new_visitor": {"is"},
    "referrer_domain": {"in", "not_in"},
}


def refusal_of(kind: str, operator: str, value: object) -> AdloomError:
    with pytest.raises(AdloomError) as caught:
        parse_rule(kind, operator, value)
    return caught.value


@for_each("kind", RuleType)
@for_each("operator", [*Operator, "equals", "IN", ""])
def test_each_type_accepts_its_operators_and_no_other(kind: RuleType, operator: str) -> None:
    if operator in ALLOWED[kind]:
        assert operator in OPERATORS[kind]
        return

    refusal = refusal_of(kind, operator, [])

    assert (refusal.code, refusal.status) == ("TARGETING_RULE_INVALID_OPERATOR", 400)
    assert [problem.field for problem in refusal.errors] == ["operator"]
    assert all(allowed in refusal.detail for allowed in ALLOWED[kind])
    assert f'"{operator}"' in refusal.detail


def test_the_error_for_an_unknown_type_lists_the_known_types() -> None:
    refusal = refusal_of("weather", "in", ["sun"])

    assert isinstance(refusal, ValidationFailedError)
    assert [problem.field for problem in refusal.errors] == ["ruleType"]
    assert all(kind in refusal.detail for kind in RuleType)


@for_each(
    ("kind", "operator", "value", "normal"),
    [
        ("device", "in", [" Mobile", "TABLET", "mobile"], ["mobile", "tablet"]),
        ("country", "in", ["de", "At ", "DE"], ["DE", "AT"]),
        ("country", "in", ["uk", "GB"], ["GB"]),
        ("language", "in", ["de-DE", "DE", "pt_BR", "zh-Hant-TW", "gsw"], ["de", "pt", "zh", "gsw"]),
        ("user_segment", "in", [" High-Intent ", "high-intent"], ["High-Intent", "high-intent"]),
        ("referrer_domain", "in", ["Example.COM.", "example.com"], ["example.com"]),
        ("referrer_domain", "in", ["m\u00fcller.de"], ["xn--mller-kva.de"]),
        ("referrer_domain", "in", ["localhost", "192.168.0.1", "a_b.example"], None),
        ("hour_of_day", "in", [23, 0, 23], [23, 0]),
        ("hour_of_day", "between", [22, 5], [22, 5]),
        ("hour_of_day", "between", (7, 7), [7, 7]),
        ("day_of_week", "not_in", [6, 0, 6], [6, 0]),
        ("login_state", "is", True, True),
        ("new_visitor", "is", False, False),
    ],
)
def test_values_are_normalized(kind: str, operator: str, value: list[object], normal: object) -> None:
    assert parse_rule(kind, operator, value).json_value == (value if normal is None else normal)


DEVICE = "it is one of mobile, tablet, desktop"
COUNTRY = "write the two letters of ISO 3166, such as DE"
LANGUAGE = "write its two or three letters, such as de"
HOUR = "write a whole number from 0 to 23"
DAY = "write a whole number from 0 (Sunday) to 6 (Saturday)"
SEGMENT = "a text of 1 to 100 characters"
DOMAIN = "write it without https://, path or asterisk, such as example.com"
LIST = "must be a list of at least one entry"
PAIR = "must be a pair of hours"
BOOLEAN = "must be true or false"


@for_each(
    ("kind", "operator", "value", "named", "allowed"),
    [
        ("device", "in", ["mobile", "phone"], '"phone"', DEVICE),
        ("device", "in", [1], "1", DEVICE),
        ("device", "in", [None], "null", DEVICE),
        ("country", "in", ["DE", "Germany"], '"Germany"', COUNTRY),
        ("country", "in", ["XX"], '"XX"', COUNTRY),
        ("country", "not_in", ["T1"], '"T1"', COUNTRY),
        ("country", "not_in", [49], "49", COUNTRY),
        ("country", "in", ["Ä1"], '"Ä1"', COUNTRY),
        ("language", "in", ["german"], '"german"', LANGUAGE),
        ("language", "in", ["*"], '"*"', LANGUAGE),
        ("language", "in", ["de-"], '"de-"', LANGUAGE),
        ("user_segment", "in", ["  "], '"  "', SEGMENT),
        ("user_segment", "in", ["s" * 101], '"sss', SEGMENT),
        ("user_segment", "in", ["a\x00b"], "a\\u0000b", SEGMENT),
        ("user_segment", "in", [{"name": "x"}], '{"name":"x"}', SEGMENT),
        ("hour_of_day", "in", [24], "24", HOUR),
        ("hour_of_day", "in", [-1], "-1", HOUR),
        ("hour_of_day", "in", [True], "true", HOUR),
        ("hour_of_day", "in", [9.5], "9.5", HOUR),
        ("hour_of_day", "not_in", ["9"], '"9"', HOUR),
        ("hour_of_day", "between", [9, 24], "24", HOUR),
        ("hour_of_day", "between", [9], "[9]", PAIR),
        ("hour_of_day", "between", [1, 2, 3], "[1,2,3]", PAIR),
        ("hour_of_day", "between", {"from": 9, "to": 17}, '{"from":9', PAIR),
        ("hour_of_day", "between", "9-17", '"9-17"', PAIR),
        ("day_of_week", "in", [7], "7", DAY),
        ("day_of_week", "in", ["monday"], '"monday"', DAY),
        ("referrer_domain", "in", ["https://example.com/"], '"https://example.com/"', DOMAIN),
        ("referrer_domain", "in", ["*.example.com"], '"*.example.com"', DOMAIN),
        ("referrer_domain", "in", ["example..com"], '"example..com"', DOMAIN),
        ("referrer_domain", "in", ["-a.com"], '"-a.com"', DOMAIN),
        ("referrer_domain", "in", [""], '""', DOMAIN),
        ("referrer_domain", "in", ["stra\u00dfe.de"], "stra\u00dfe.de", DOMAIN),
        ("referrer_domain", "in", ["\u00fc" * 64 + ".de"], "\u00fc\u00fc", DOMAIN),
        ("referrer_domain", "in", [".".join(["a" * 60] * 5)], '"aaa', DOMAIN),
        ("referrer_domain", "in", ["a." * 16 + "com"], '"a.a.', DOMAIN),
        ("login_state", "is", "true", '"true"', BOOLEAN),
        ("login_state", "is", 1, "1", BOOLEAN),
        ("new_visitor", "is", [True], "[true]", BOOLEAN),
        ("new_visitor", "is", None, "null", BOOLEAN),
        ("device", "in", [], "[]", LIST),
        ("country", "in", "DE", '"DE"', LIST),
        ("country", "in", None, "null", LIST),
        ("country", "in", {"DE": True}, '{"DE":true}', LIST),
        ("country", "in", object(), "object", LIST),
    ],
)
def test_the_error_for_a_bad_value_names_it_and_says_what_is_allowed(
    kind: str, operator: str, value: object, named: str, allowed: str
) -> None:
    refusal = refusal_of(kind, operator, value)

    assert isinstance(refusal, ValidationFailedError)
    assert [problem.field for problem in refusal.errors] == ["value"]
    assert named in refusal.detail
    assert allowed in refusal.detail


def test_a_list_has_at_most_1000_values() -> None:
    longest = [f"s{number}" for number in range(VALUES_MAX)]

    assert len(parse_rule("user_segment", "in", longest).values) == VALUES_MAX
    assert "at most 1000" in refusal_of("user_segment", "in", [*longest, "one more"]).detail


def test_a_long_value_is_shortened_in_the_error() -> None:
    assert len(refusal_of("device", "in", ["x" * 10_000]).detail) < 200


@given(rules())
def test_a_rule_can_be_parsed_again_from_its_json_value(rule: Rule) -> None:
    assert parse_rule(rule.rule_type, rule.operator, rule.json_value) == rule


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


@given(st.sampled_from(RuleType), st.data(), ANYTHING | st.lists(ANYTHING, min_size=1, max_size=2))
def test_any_value_gives_a_normalized_rule_or_a_validation_error(
    kind: RuleType, data: st.DataObject, value: object
) -> None:
    operator = data.draw(st.sampled_from(OPERATORS[kind]))
    try:
        rule = parse_rule(kind, operator, value)
    except ValidationFailedError:
        return

    assert parse_rule(kind, operator, rule.json_value) == rule
