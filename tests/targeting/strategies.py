"""Random rules and contexts, over so few values that they often match."""

from hypothesis import strategies as st

from adloom.targeting.context import Context
from adloom.targeting.rules import OPERATORS, Operator, Rule, RuleType, Value, parse_rule

HOURS = st.integers(0, 23)
# Nested domains, domains with the same ending, and one that is a prefix of another but not its parent.
DOMAINS = st.sampled_from(
    ["com", "example.com", "a.example.com", "b.a.example.com", "notexample.com", "example.org", "a.example"]
)

VALUES: dict[RuleType, st.SearchStrategy[Value]] = {
    RuleType.DEVICE: st.sampled_from(["mobile", "tablet", "desktop"]),
    RuleType.COUNTRY: st.sampled_from(["DE", "AT", "FR"]),
    RuleType.USER_SEGMENT: st.sampled_from(["buyers", "Buyers", "high-intent"]),
    RuleType.LOGIN_STATE: st.booleans(),
    RuleType.LANGUAGE: st.sampled_from(["de", "en", "gsw"]),
    RuleType.HOUR_OF_DAY: HOURS,
    RuleType.DAY_OF_WEEK: st.integers(0, 6),
    RuleType.NEW_VISITOR: st.booleans(),
    RuleType.REFERRER_DOMAIN: DOMAINS,
}


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    kind = draw(st.sampled_from(RuleType))
    operator = draw(st.sampled_from(OPERATORS[kind]))
    if operator is Operator.IS:
        return parse_rule(kind, operator, draw(st.booleans()))
    if operator is Operator.BETWEEN:
        return parse_rule(kind, operator, [draw(HOURS), draw(HOURS)])
    return parse_rule(kind, operator, draw(st.lists(VALUES[kind], min_size=1, max_size=4)))


def contexts() -> st.SearchStrategy[Context]:
    subdomains = st.builds("{}.{}".format, st.sampled_from(["www", "x.y"]), DOMAINS)
    return st.builds(
        Context,
        device=st.none() | VALUES[RuleType.DEVICE],
        country=st.none() | st.sampled_from(["DE", "AT", "FR", "US"]),
        language=st.none() | st.sampled_from(["de", "en", "gsw", "fr"]),
        is_logged_in=st.booleans(),
        is_new_visitor=st.booleans(),
        referrer_domain=st.none() | DOMAINS | subdomains | st.just("elsewhere.net"),
        segment=st.none() | st.sampled_from(["buyers", "Buyers", "high-intent", "others"]),
        hour=HOURS,
        day=st.integers(0, 6),
    )
