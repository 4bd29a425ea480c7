"""Whether rules hold for a request, one by one: the plain meaning that the bitmaps must agree with."""

from collections.abc import Sequence

from adloom.targeting.context import Context
from adloom.targeting.rules import Operator, Rule, RuleType, Value
from adloom.targeting.values import list_domain_and_parents


def matches(rule: Rule, context: Context) -> bool:
    """Whether a rule holds; an unknown value is in no list."""
    value = get_value(rule.rule_type, context)
    match rule.operator:
        case Operator.IN:
            return _is_listed(rule, value)
        case Operator.NOT_IN:
            return not _is_listed(rule, value)
        case Operator.IS:
            return value == rule.values[0]
        case Operator.BETWEEN:
            return _is_between(rule, context.hour)


def find_failing(rules: Sequence[Rule], context: Context) -> Rule | None:
    """Return the first rule that does not hold, or None."""
    return next((rule for rule in rules if not matches(rule, context)), None)


def matches_all(rules: Sequence[Rule], context: Context) -> bool:
    """Whether all rules of a campaign hold; without rules it targets all visitors."""
    return find_failing(rules, context) is None


def get_value(rule_type: RuleType, context: Context) -> Value | None:  # noqa: PLR0911 - a table of nine
    match rule_type:
        case RuleType.DEVICE:
            return context.device
        case RuleType.COUNTRY:
            return context.country
        case RuleType.USER_SEGMENT:
            return context.segment
        case RuleType.LOGIN_STATE:
            return context.is_logged_in
        case RuleType.LANGUAGE:
            return context.language
        case RuleType.HOUR_OF_DAY:
            return context.hour
        case RuleType.DAY_OF_WEEK:
            return context.day
        case RuleType.NEW_VISITOR:
            return context.is_new_visitor
        case RuleType.REFERRER_DOMAIN:
            return context.referrer_domain


def _is_listed(rule: Rule, value: Value | None) -> bool:
    if rule.rule_type is RuleType.REFERRER_DOMAIN and isinstance(value, str):
        return any(domain in rule.values for domain in list_domain_and_parents(value))
    return value in rule.values


def _is_between(rule: Rule, hour: int) -> bool:
    first, last = rule.values
    assert isinstance(first, int)
    assert isinstance(last, int)
    return first <= hour <= last if first <= last else hour >= first or hour <= last
