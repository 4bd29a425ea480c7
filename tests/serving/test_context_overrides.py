"""What a body's `context` may say, in the words of the query."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import ValidationFailedError
from adloom.serving.request.overrides import PARAMETERS, parse_overrides, parse_query
from tests.targeting.builders import DEFAULT_CONTEXT

SOMEONE = "01890000-0000-7000-8000-000000000000"


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
            "userId": SOMEONE,
            "somethingElse": {"is": "ignored"},
        }
    )

    context = overrides.apply_to(DEFAULT_CONTEXT)

    assert (context.device, context.country, context.language) == ("tablet", "AT", "en")
    assert (context.is_logged_in, context.is_new_visitor) == (True, True)
    assert (context.referrer_domain, context.segment) == ("example.com", "buyers")
    assert (context.hour, context.day) == (DEFAULT_CONTEXT.hour, DEFAULT_CONTEXT.day)
    assert overrides.user_id == UUID(SOMEONE)


def test_null_says_that_a_thing_is_unknown() -> None:
    overrides = parse_overrides({"device": None, "country": None, "userId": None})

    context = overrides.apply_to(DEFAULT_CONTEXT)

    assert (context.device, context.country, context.language) == (None, None, DEFAULT_CONTEXT.language)
    assert overrides.user_id is None


def test_nothing_given_changes_nothing() -> None:
    assert parse_overrides({}).apply_to(DEFAULT_CONTEXT) is DEFAULT_CONTEXT


@pytest.mark.parametrize(
    ("name", "value", "takes"),
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
def test_what_makes_no_sense_is_named_with_what_does(name: str, value: object, takes: str) -> None:
    with pytest.raises(ValidationFailedError) as caught:
        parse_overrides({name: value}, within="context.")

    [problem] = caught.value.errors
    assert problem.field == f"context.{name}"
    assert takes in problem.message
    assert len(problem.message) < 200
    assert caught.value.code == "VALIDATION_FAILED"


def test_everything_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(ValidationFailedError) as caught:
        parse_query(b"device=phone&country=DE&loggedIn=maybe")

    assert [one.field for one in caught.value.errors] == ["device", "loggedIn"]


JSON = st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=20) | st.lists(st.none(), max_size=1)


@given(st.dictionaries(st.sampled_from(list(PARAMETERS)), JSON))
def test_whatever_is_given_is_taken_or_refused_by_name(given_values: dict[str, object]) -> None:
    try:
        overrides = parse_overrides(given_values)
    except ValidationFailedError as refusal:
        names = {one.field for one in refusal.errors}
    else:
        names = set[str]()
        assert overrides.apply_to(overrides.apply_to(DEFAULT_CONTEXT)) == overrides.apply_to(DEFAULT_CONTEXT)

    assert names <= given_values.keys()
