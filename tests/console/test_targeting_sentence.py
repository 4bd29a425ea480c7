"""Targeting rules as one sentence."""

from typing import Any

import pytest

from adloom.console.components.targeting_sentence import RULE_WORDS, describe_rule, describe_rules
from adloom.console.pages.campaigns.targeting import CHOICES, OPERATOR_LABELS
from adloom.targeting.rules import OPERATORS, RuleType, parse_rule
from tests.support.for_each import for_each


def a_rule(rule_type: str, operator: str, value: Any, *, is_active: bool = True) -> dict[str, Any]:
    return {"ruleType": rule_type, "operator": operator, "value": value, "isActive": is_active}


def test_rules_are_described_in_one_sentence() -> None:
    rules = [
        a_rule("login_state", "is", value=False),
        a_rule("device", "in", ["mobile"]),
        a_rule("country", "in", ["DE", "AT"]),
    ]

    assert describe_rules(rules) == "Shown in Germany or Austria, on phones, not to logged-in readers."


def test_without_rules_everyone_sees_it() -> None:
    assert describe_rules([]) == "Shown to everyone, everywhere, at any time."


def test_a_rule_that_is_off_does_not_count_but_is_mentioned() -> None:
    rules = [a_rule("new_visitor", "is", value=True), a_rule("country", "in", ["DE"], is_active=False)]

    assert describe_rules(rules) == "Shown to new visitors. One condition is switched off."


@for_each(
    ("rule", "part"),
    [
        (a_rule("country", "not_in", ["DE", "AT", "CH"]), "outside Germany, Austria and Switzerland"),
        (a_rule("country", "in", ["QQ"]), "in QQ"),
        (a_rule("language", "in", ["en"]), "to readers of English"),
        (a_rule("user_segment", "not_in", ["staff"]), "not to the segment “staff”"),
        (a_rule("referrer_domain", "in", ["example.com"]), "to visitors from example.com"),
        (a_rule("hour_of_day", "between", [22, 5]), "from 22:00 to 5:59"),
        (a_rule("hour_of_day", "in", [9, 12]), "in the hours 9 or 12"),
        (a_rule("day_of_week", "in", [1, 2, 3, 4, 5]), "from Monday to Friday"),
        (a_rule("day_of_week", "in", [6, 0, 1]), "from Saturday to Monday"),
        (a_rule("day_of_week", "in", [1, 3, 5]), "on Monday, Wednesday or Friday"),
        (a_rule("day_of_week", "in", [0, 6]), "on Sunday or Saturday"),
        (
            a_rule("day_of_week", "in", [0, 1, 2, 3, 4, 5, 6]),
            "on Sunday, Monday, Tuesday, Wednesday, Thursday, Friday or Saturday",
        ),
        (a_rule("day_of_week", "not_in", [0]), "not on Sunday"),
        (a_rule("new_visitor", "is", value=False), "to returning visitors"),
    ],
)
def test_each_kind_of_rule_has_a_description(rule: dict[str, Any], part: str) -> None:
    assert describe_rule(rule) == part


def test_every_rule_type_and_operator_can_be_described_and_chosen() -> None:
    assert set(RULE_WORDS) == set(RuleType)
    assert {operator for operators in OPERATORS.values() for operator in operators} == set(OPERATOR_LABELS)


@pytest.mark.parametrize("rule_type", CHOICES)
def test_the_api_accepts_everything_the_dialog_offers(rule_type: str) -> None:
    offered = list(CHOICES[rule_type])

    assert parse_rule(rule_type, "in", offered).json_value == offered
