"""One event takes a bounded number of bytes, whatever a client sends."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.events.ingest.api import ACCEPTED
from adloom.events.ingest.bounds import ADDRESS_BYTES_MAX, encode_bounded, shorten_address
from adloom.events.log.event import Click, Impression, Mark, decode_event
from tests.events.builders import USER, a_click, an_impression
from tests.events.edge import a_report, an_edge

EVENT_BYTES_MAX = 6_000
LONG = "https://pub.example/" + "\N{GRINNING FACE}" * 8_000


@given(st.text(max_size=8_192))
def test_an_address_fits_and_begins_as_it_was(address: str) -> None:
    short = shorten_address(address)

    assert len(short.encode()) <= ADDRESS_BYTES_MAX
    assert address.startswith(short)
    assert short == address or len(address.encode()) > ADDRESS_BYTES_MAX


def test_a_long_query_is_cut_off_and_the_path_stays() -> None:
    path = "https://pub.example/a/page"

    assert shorten_address(f"{path}?q={'x' * 3_000}#part") == path
    assert shorten_address(f"{path}?q=x") == f"{path}?q=x"
    assert urlsplit(shorten_address(f"{path}#{'x' * 3_000}")).path == "/a/page"


@pytest.mark.parametrize(
    "event",
    [
        an_impression(
            "\N{GRINNING FACE}" * 128, page_url=LONG, referrer_url=LONG, session_id="\N{GRINNING FACE}" * 128
        ),
        a_click(
            "\N{GRINNING FACE}" * 128,
            page_url=LONG,
            destination_url=LONG,
            session_id="\N{GRINNING FACE}" * 128,
        ),
    ],
)
def test_the_largest_event_has_a_bound(event: Impression | Click) -> None:
    assert len(encode_bounded(event)) < EVENT_BYTES_MAX


def test_an_event_of_a_flood_keeps_only_what_is_counted() -> None:
    personal: dict[str, Any] = {"user_id": USER, "session_id": "s", "page_url": "https://p.example"}
    marks = (Mark.ADDRESS_FLOOD,)

    impression = encode_bounded(an_impression(**personal, referrer_url="https://r.example", marks=marks))
    click = encode_bounded(a_click(**personal, destination_url="https://d.example", marks=marks))

    assert decode_event(impression) == an_impression(marks=marks)
    assert decode_event(click) == a_click(marks=marks)


async def test_what_the_routes_store_has_a_bound() -> None:
    async with an_edge() as edge:
        answer = await edge.post("impression", a_report(pageUrl=LONG, referrerUrl=LONG))

        assert answer is ACCEPTED
        [entry] = edge.store.entries
        assert len(entry) < EVENT_BYTES_MAX
