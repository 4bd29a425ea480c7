"""The fields of a body's `context`: the same names as in the query."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import ValidationFailedError
from adloom.serving.request.overrides import PARAMETERS, parse_overrides, parse_query
from tests.support.for_each import for_each
from tests.targeting.builders import DEFAULT_CONTEXT

USER_ID = "01890000-0000-7000-8000-000000000000"


def test_every_field_can_be_given_in_a_body() -> None:
    overrides = parse_overrides(
        {
            "device": "tablet",
            "country": "at",
            "language": "en-GB",
            "loggedIn": True,
            "newVisitor": True,
            "referrer": "https://example.com/x",
            "segment": "buyers",
            "userId": USER_ID,
            "somethingElse": {"is": "ignored"},
        }
    )

    context = overrides.apply_to(DEFAULT_CONTEXT)

    assert (context.device, context.country, context.language) == ("tablet", "AT", "en")
    assert (context.is_logged_in, context.is_new_visitor) == (True, True)
    assert (context.referrer_domain, context.segment) == ("example.com", "buyers")
    assert (context.hour, context.day) == (DEFAULT_CONTEXT.hour, DEFAULT_CONTEXT.day)
    assert overrides.user_id == UUID(USER_ID)


def test_null_makes_a_value_unknown() -> None:
    overrides = parse_overrides({"device": None, "country": None, "userId": None})

    context = overrides.apply_to(DEFAULT_CONTEXT)

    assert (context.device, context.country, context.language) == (None, None, DEFAULT_CONTEXT.language)
    assert overrides.user_id is None


def test_no_overrides_change_nothing() -> None:
    assert parse_overrides({}).apply_to(DEFAULT_CONTEXT) is DEFAULT_CONTEXT


@for_each(
    ("name", "value", "allowed"),
    [
        ("device", "phone", "one of mobile, tablet, desktop"),
        ("device", 7, "one of mobile, tablet, desktop"),
        ("country", "Germany", "the two letters of a country"),
        ("language", "german!", "a language tag"),
        ("loggedIn", "yes", "true or false"),
        ("loggedIn", "", "true or false"),
        ("loggedIn", None, "true or false"),
        ("newVisitor", 1, "true or false"),
        ("newVisitor", [True], "true or false"),
        ("referrer", "not a domain", "an address or a domain"),
        ("referrer", "https://", "an address or a domain"),
        ("segment", "s" * 101, "a text of 1 to 100 characters"),
        ("segment", "a\nb", "a text of 1 to 100 characters"),
        ("userId", "somebody", "a UUID"),
        ("userId", {}, "a UUID"),
    ],
)
def test_the_error_for_an_invalid_value_names_it_and_says_what_is_allowed(
    name: str, value: object, allowed: str
) -> None:
    with pytest.raises(ValidationFailedError) as caught:
        parse_overrides({name: value}, within="context.")

    [problem] = caught.value.errors
    assert problem.field == f"context.{name}"
    assert allowed in problem.message
    assert len(problem.message) < 200
    assert caught.value.code == "VALIDATION_FAILED"


def test_the_error_names_all_invalid_parameters() -> None:
    with pytest.raises(ValidationFailedError) as caught:
        parse_query(b"device=phone&country=DE&loggedIn=maybe")

    assert [one.field for one in caught.value.errors] == ["device", "loggedIn"]


JSON = st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=20) | st.lists(st.none(), max_size=1)


@given(st.dictionaries(st.sampled_from(list(PARAMETERS)), JSON))
def test_any_value_is_accepted_or_refused_by_name(given_values: dict[str, object]) -> None:
    try:
        overrides = parse_overrides(given_values)
    except ValidationFailedError as refusal:
        names = {one.field for one in refusal.errors}
    else:
        names = set[str]()
        assert overrides.apply_to(overrides.apply_to(DEFAULT_CONTEXT)) == overrides.apply_to(DEFAULT_CONTEXT)

    assert names <= given_values.keys()
