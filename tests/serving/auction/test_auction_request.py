"""Parsing auction requests: common forms, unusual forms, and what is refused."""

import json
from typing import Any
from uuid import UUID

import pytest

from adloom.core.errors import ValidationFailedError
from adloom.serving.auction.request import CONTEXT_BYTES_CACHED_MAX, parse_request
from tests.support.for_each import for_each
from tests.support.rows import an_id

USER = an_id(7)


def a_body(**fields: Any) -> bytes:
    return json.dumps({"userId": str(USER), **fields}).encode()


@pytest.mark.parametrize("written", [str(USER), str(USER).upper(), USER.hex])
def test_a_user_id_is_normalized(written: str) -> None:
    assert parse_request(a_body(userId=written)).user == str(USER)


@for_each("written", ["", "nobody", f"{USER}0", f" {USER}", str(USER)[:-1] + "g", 7, None])
def test_the_error_for_an_invalid_user_id_names_its_field(written: object) -> None:
    with pytest.raises(ValidationFailedError) as failure:
        parse_request(a_body(userId=written))

    assert [problem.field for problem in failure.value.errors] == ["userId"]


def test_equal_visitor_contexts_are_parsed_once() -> None:
    context = {"country": "FR", "lastPurchaseDays": "3"}
    first, second = (parse_request(a_body(userId=str(an_id(n)), userContext=context)).visitor for n in (1, 2))

    assert first is second
    assert first.last_purchase_days == 3
    assert first.overrides.fields == {"country": "FR"}


def test_a_context_that_is_too_long_for_the_cache_is_parsed() -> None:
    context = {"country": "FR", "something": "x" * CONTEXT_BYTES_CACHED_MAX}

    assert parse_request(a_body(userContext=context)).visitor.overrides.fields == {"country": "FR"}


@pytest.mark.parametrize("context", [None, {}])
def test_the_context_of_a_visitor_may_be_empty(context: object) -> None:
    assert parse_request(a_body(userContext=context)).visitor is parse_request(a_body()).visitor


@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({"country": 7}, "userContext.country"),
        ({"country": "Atlantis"}, "userContext.country"),
        ({"lastPurchaseDays": "soon"}, "userContext.lastPurchaseDays"),
        (["FR"], "userContext"),
        ("FR", "userContext"),
        ({f"key-{number}": "x" for number in range(65)}, "userContext"),
    ],
)
def test_the_error_for_an_invalid_context_names_the_field_every_time(context: object, field: str) -> None:
    for _ in range(2):
        with pytest.raises(ValidationFailedError) as failure:
            parse_request(a_body(userContext=context))

        assert failure.value.errors[0].field == field


@pytest.mark.parametrize("body", [b"", b"[]", b'{"userId"', b"\xff", b'{"userId":"a","userContext":{]}'])
def test_a_malformed_body_is_refused(body: bytes) -> None:
    with pytest.raises(ValidationFailedError):
        parse_request(body)


def test_a_text_with_a_nul_is_refused() -> None:
    with pytest.raises(ValidationFailedError):
        parse_request(a_body(placement="a\0b"))
    with pytest.raises(ValidationFailedError):
        parse_request(a_body(userContext={"segment": "a\0b"}))


def test_the_zero_id_is_accepted_as_a_user() -> None:
    assert UUID(parse_request(a_body(userId=str(UUID(int=0)))).user) == UUID(int=0)
