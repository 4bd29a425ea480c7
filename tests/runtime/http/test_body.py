"""An error in a body is reported by its field, if it has one."""

from typing import Any

import msgspec
import pytest

from adloom.core.errors import ValidationFailedError
from adloom.runtime.http.body import BodyDecoder
from tests.support.for_each import for_each


class Example(msgspec.Struct):
    name: str
    known: dict[str, Any] = {}


decode = BodyDecoder(Example).decode


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"name": "a", "known": {"b": 1e400}}', "known[...]"),
        (b'{"name": "a", "known": {"b": [{"c": -1e400}]}}', "known[...][0][...]"),
        (b'{"name": 1e400}', "name"),
        (b'{"name": 7, "known": {"b": 1e400}}', "name"),
        (b'{"other": 1e400}', "body"),
    ],
)
def test_an_infinite_number_is_reported_by_its_field(body: bytes, field: str) -> None:
    with pytest.raises(ValidationFailedError) as failed:
        decode(body)

    assert [problem.field for problem in failed.value.errors] == [field]


@for_each("body", [b"[]", b"7", b"null", b'"{}"', b"1e400", b"[1e400]", b'[{"name": 7}]'])
def test_a_body_that_is_not_an_object_is_rejected(body: bytes) -> None:
    with pytest.raises(ValidationFailedError, match="must be a JSON object") as failed:
        decode(body)

    assert not failed.value.errors


def test_a_wrong_field_is_named_once() -> None:
    with pytest.raises(ValidationFailedError) as failed:
        decode(b'{"name": "a\\u0000", "known": "b\\u0000"}')

    assert [problem.field for problem in failed.value.errors] == ["known", "name"]


def test_what_is_said_of_a_body_that_cannot_be_read_is_why() -> None:
    with pytest.raises(ValidationFailedError, match=r"not JSON that can be read: JSON is malformed"):
        decode(b'{"name": 7, "known": {"b": \x00}}')
