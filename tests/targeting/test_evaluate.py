"""Every rule type with every operator, and the laws that hold for all of them."""

from hypothesis import assume, given
from hypothesis import strategies as st

from adloom.targeting.context import Context
from adloom.targeting.evaluate import find_failing, get_value, matches, matches_all
from adloom.targeting.rules import OPERATORS, Operator, Rule, RuleType, parse_rule
from tests.support.for_each import for_each
from tests.targeting.builders import a_context
from tests.targeting.strategies import DOMAINS, HOURS, contexts, rules

Case = tuple[str, str, object, list[object], list[object], str]

# The rule; values of a context's field that it matches, and values that it does not match; the field.
TABLE: list[Case] = [
    ("device", "in", ["mobile", "tablet"], ["mobile", "tablet"], ["desktop", None], "device"),
    ("device", "not_in", ["desktop"], ["mobile", None], ["desktop"], "device"),
    ("country", "in", ["DE", "AT"], ["DE", "AT"], ["FR", None], "country"),
    ("country", "not_in", ["DE", "AT"], ["FR", None], ["DE", "AT"], "country"),
    ("user_segment", "in", ["buyers"], ["buyers"], ["Buyers", "others", None], "segment"),
    ("user_segment", "not_in", ["buyers"], ["others", None], ["buyers"], "segment"),
    ("login_state", "is", True, [True], [False], "is_logged_in"),
    ("login_state", "is", False, [False], [True], "is_logged_in"),
    ("language", "in", ["de"], ["de"], ["en", None], "language"),
    ("language", "not_in", ["de"], ["en", None], ["de"], "language"),
    ("hour_of_day", "between", [9, 17], [9, 12, 17], [8, 18, 0, 23], "hour"),
    ("hour_of_day", "between", [22, 5], [22, 23, 0, 5], [6, 12, 21], "hour"),
    ("hour_of_day", "between", [7, 7], [7], [6, 8], "hour"),
    ("hour_of_day", "between", [0, 23], [0, 12, 23], [], "hour"),
    ("hour_of_day", "between", [12, 11], [0, 11, 12, 23], [], "hour"),
    ("hour_of_day", "in", [0, 23], [0, 23], [1, 22], "hour"),
    ("hour_of_day", "not_in", [0, 23], [1, 22], [0, 23], "hour"),
    ("day_of_week", "in", [0, 6], [0, 6], [1, 5], "day"),
    ("day_of_week", "not_in", [0, 6], [1, 5], [0, 6], "day"),
    ("new_visitor", "is", True, [True], [False], "is_new_visitor"),
    ("new_visitor", "is", False, [False], [True], "is_new_visitor"),
    (
        "referrer_domain",
        "in",
        ["example.com"],
        ["example.com", "www.example.com", "a.b.example.com"],
        ["notexample.com", "example.com.evil.net", "com", "example.org", None],
        "referrer_domain",
    ),
    (
        "referrer_domain",
        "not_in",
        ["example.com"],
        ["notexample.com", "com", None],
        ["example.com", "www.example.com"],
        "referrer_domain",
    ),
]


@for_each("case", TABLE)
def test_a_rule_matches_the_values_inside_and_not_those_outside(case: Case) -> None:
    kind, operator, value, inside, outside, field = case
    rule = parse_rule(kind, operator, value)

    assert [one for one in inside if not matches(rule, a_context(**{field: one}))] == []
    assert [one for one in outside if matches(rule, a_context(**{field: one}))] == []


def test_the_table_has_every_type_with_every_operator() -> None:
    assert {(kind, operator) for kind, operator, *_ in TABLE} == {
        (kind.value, operator.value) for kind, operators in OPERATORS.items() for operator in operators
    }


@given(rules(), contexts())
def test_not_in_is_the_complement_of_in(rule: Rule, context: Context) -> None:
    assume(Operator.NOT_IN in OPERATORS[rule.rule_type] and rule.operator is not Operator.BETWEEN)
    inside = Rule(rule.rule_type, Operator.IN, rule.values)
    outside = Rule(rule.rule_type, Operator.NOT_IN, rule.values)

    assert matches(inside, context) is not matches(outside, context)
    if get_value(rule.rule_type, context) is None:
        assert matches(outside, context)


@given(HOURS, HOURS, HOURS)
def test_between_wraps_around_midnight(first: int, last: int, hour: int) -> None:
    spanned = [(first + step) % 24 for step in range((last - first) % 24 + 1)]
    context = a_context(hour=hour)

    is_between = matches(parse_rule("hour_of_day", "between", [first, last]), context)

    assert is_between == matches(parse_rule("hour_of_day", "in", spanned), context)


@given(DOMAINS, st.text("abcxyz-", min_size=1, max_size=8))
def test_only_whole_labels_make_a_subdomain(domain: str, label: str) -> None:
    rule = parse_rule("referrer_domain", "in", [domain])

    assert matches(rule, a_context(referrer_domain=f"{label}.{domain}"))
    assert not matches(rule, a_context(referrer_domain=f"{label}{domain}"))


@given(st.lists(rules(), max_size=6), contexts())
def test_all_rules_must_hold_and_the_first_that_fails_is_named(several: list[Rule], context: Context) -> None:
    failing = [rule for rule in several if not matches(rule, context)]

    assert find_failing(several, context) is (failing[0] if failing else None)
    assert matches_all(several, context) is (not failing)


def test_a_campaign_without_rules_targets_all_visitors() -> None:
    assert matches_all([], a_context())
    assert find_failing([], a_context()) is None


@for_each("kind", RuleType)
def test_every_rule_type_reads_a_value_of_the_context(kind: RuleType) -> None:
    full_context = a_context(segment="buyers", referrer_domain="example.com")

    assert get_value(kind, full_context) is not None
