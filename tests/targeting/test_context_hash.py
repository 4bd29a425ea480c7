"""The hash of a context, used in cache keys."""

from hashlib import sha256

from adloom.targeting.context import hash_context
from tests.support.for_each import for_each
from tests.targeting.builders import a_context


def test_the_hash_is_of_eight_values_in_their_order() -> None:
    context = a_context(
        device="mobile",
        country="DE",
        is_logged_in=True,
        language="de",
        hour=9,
        day=1,
        referrer_domain="a.com",
    )

    assert hash_context(context) == sha256(b"mobile|DE|true|de|9|1|false|a.com").hexdigest()[:16]


def test_an_unknown_value_is_empty_in_the_hash() -> None:
    context = a_context(device=None, country=None, language=None, is_new_visitor=True, hour=0, day=0)

    assert hash_context(context) == sha256(b"||false||0|0|true|").hexdigest()[:16]


@for_each(
    ("field", "value"),
    [
        ("device", "tablet"),
        ("country", "AT"),
        ("language", "en"),
        ("is_logged_in", True),
        ("is_new_visitor", True),
        ("referrer_domain", "example.com"),
        ("hour", 13),
        ("day", 1),
    ],
)
def test_each_of_the_eight_values_changes_the_hash(field: str, value: object) -> None:
    assert hash_context(a_context(**{field: value})) != hash_context(a_context())


def test_the_segment_is_not_part_of_the_hash() -> None:
    assert hash_context(a_context(segment="buyers")) == hash_context(a_context())
