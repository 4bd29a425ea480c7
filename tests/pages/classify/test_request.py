"""A request keeps what classifiers read, and knows by a hash whether the text is another."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import SiteId
from adloom.pages.classify.request import (
    TEXT_CHARACTERS_MAX,
    TITLE_CHARACTERS_MAX,
    ClassifyRequest,
    hash_content,
    make_request,
)
from adloom.pages.model import PageSource

SITE = SiteId(UUID(int=7))
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def a_request(**fields: Any) -> ClassifyRequest:
    return make_request(site_id=SITE, url="a.test/x", source=PageSource.TAG, now=NOW, **fields)


def test_a_request_is_cut_to_what_classifiers_read() -> None:
    request = a_request(title="t" * 900, text="word " * 5_000, language="de-DE-1996-x")

    assert len(request.title) == TITLE_CHARACTERS_MAX
    assert len(request.text) == TEXT_CHARACTERS_MAX
    assert request.language == "de-DE-19"


def test_a_change_beyond_the_cut_changes_the_hash() -> None:
    text = "word " * 5_000

    assert a_request(text=text).content_hash != a_request(text=f"{text} more").content_hash
    assert a_request(text=text).text == a_request(text=f"{text} more").text


def test_spaces_do_not_change_the_hash_and_parts_are_kept_apart() -> None:
    assert hash_content("A  title\n", None, "Some\ttext") == hash_content("A title", "", "Some text")
    assert hash_content("a", "b", "") != hash_content("ab", "", "")


@given(st.text(), st.text(), st.text())
def test_any_text_can_be_sent_and_stored(title: str, description: str, text: str) -> None:
    request = a_request(title=title, description=description, text=text)

    encoded = msgspec.msgpack.encode(request)
    assert msgspec.msgpack.decode(encoded, type=ClassifyRequest) == request
    assert "\0" not in request.title + request.description + request.text
