"""The price of an offer is in its token, and events take it only from there."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from adloom.events.log.event import ChargedBy, Click, Impression, decode_event, encode_event
from tests.events.builders import NOW, a_token, an_impression
from tests.events.edge import Edge, a_report, an_edge

OFFERED_AT = NOW - timedelta(seconds=90)
TOKEN = a_token(issued_at=OFFERED_AT, lease=4_000_000_000, charge=1_500, charged_by=ChargedBy.CLICK)


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    async with an_edge() as one:
        yield one


def get_price(event: object) -> tuple[int, int, int, ChargedBy]:
    assert isinstance(event, Impression | Click)
    return event.offered_at, event.lease, event.charge, event.charged_by


@pytest.mark.parametrize("kind", ["impression", "click"])
async def test_a_report_with_a_token_has_the_price_of_its_offer(edge: Edge, kind: str) -> None:
    await edge.post(kind, a_report(trackingToken=TOKEN.decode()))

    [event] = edge.store.events
    assert get_price(event) == (int(OFFERED_AT.timestamp()), 4_000_000_000, 1_500, ChargedBy.CLICK)


@pytest.mark.parametrize("path", [b"/i/", b"/c/"])
async def test_a_pixel_and_a_link_have_the_price_of_their_offer(edge: Edge, path: bytes) -> None:
    await edge.ask(b"GET", path + TOKEN)

    [event] = edge.store.events
    assert get_price(event) == (int(OFFERED_AT.timestamp()), 4_000_000_000, 1_500, ChargedBy.CLICK)


async def test_a_report_without_a_token_costs_nothing(edge: Edge) -> None:
    await edge.post("impression", a_report(charge=1_500, lease=7, offeredAt=1))

    [event] = edge.store.events
    assert get_price(event) == (0, 0, 0, ChargedBy.IMPRESSION)


def test_the_encoding_of_a_free_event_has_no_price_fields() -> None:
    free = encode_event(an_impression())

    assert not any(name in free for name in (b"\xa2of", b"\xa1l", b"\xa2ch", b"\xa2by"))
    assert decode_event(free) == an_impression()
