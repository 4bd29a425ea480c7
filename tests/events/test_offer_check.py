"""Reports of offers that are doubtful: too soon, too many, of another site, or of an offer for a doubtful sender."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from adloom.core.ids import PlacementId
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.events.ingest.ivt.offers import MARKS, OfferBounds, OfferCheck
from adloom.events.ingest.ivt.pages import PageCheck
from adloom.events.ingest.ivt.pair_counts import PairCounts
from adloom.events.log.event import INVALIDATING_MARKS, ChargedBy, Event, Mark
from tests.events.builders import NOW, PLACEMENT, a_token
from tests.events.edge import Edge, a_report, an_edge

CLIENT = "203.0.113.7"
LEAST = OfferBounds(impression_after=timedelta(milliseconds=100), click_after=timedelta(milliseconds=500))
FAR_BACK = NOW - timedelta(minutes=1)


def a_check(bounds: OfferBounds = LEAST, site: str | None = None) -> OfferCheck:
    def find_site(placement_id: PlacementId) -> str | None:
        assert placement_id == PLACEMENT
        return site

    return OfferCheck(bounds, PageCheck("https://ads.example"), find_site)


def parts(check: OfferCheck) -> dict[str, Any]:
    return {"detector": TrafficDetector(lambda agent: b"bot" in agent), "offer_check": check}


def issued(milliseconds_ago: int) -> datetime:
    return NOW - timedelta(milliseconds=milliseconds_ago)


async def report_all(edge: Edge, token: bytes, client: str = CLIENT) -> list[Event]:
    """Report an impression and a click in every way that there is."""
    body = a_report(trackingToken=token.decode())
    await edge.post("impression", body, client=client)
    await edge.ask(b"GET", b"/i/" + token, client=client)
    await edge.post("batch", {"events": [{"type": "impression", **body}]}, client=client)
    await edge.post("click", body, client=client)
    await edge.ask(b"GET", b"/c/" + token, client=client)
    return edge.store.events


@pytest.mark.parametrize(
    ("milliseconds", "impressions", "clicks"),
    [
        (0, (Mark.TOO_SOON,), (Mark.TOO_SOON,)),
        (90, (Mark.TOO_SOON,), (Mark.TOO_SOON,)),
        (101, (), (Mark.TOO_SOON,)),
        (590, (), (Mark.TOO_SOON,)),
        (601, (), ()),
        (60_000, (), ()),
    ],
)
async def test_reports_that_come_sooner_than_people_can_see_and_click_are_marked(
    milliseconds: int, impressions: tuple[Mark, ...], clicks: tuple[Mark, ...]
) -> None:
    async with an_edge(**parts(a_check())) as edge:
        events = await report_all(edge, a_token(issued_at=issued(milliseconds)))

    assert [event.marks for event in events] == [impressions] * 3 + [clicks] * 2


async def test_a_report_is_never_marked_sooner_than_it_is_too_soon() -> None:
    """A token leaves out up to 8 ms of when its offer was made: then the offer seems older, never younger."""
    for micros in range(0, 10**6, 7_919):
        async with an_edge(**parts(a_check())) as edge:
            made_at = NOW + timedelta(microseconds=micros)
            edge.clock.advance(made_at + timedelta(milliseconds=100) - NOW)
            await edge.ask(b"GET", b"/i/" + a_token(issued_at=made_at), client=CLIENT)

        assert [event.marks for event in edge.store.events] == [()]


async def test_an_offer_of_a_process_whose_clock_is_ahead_is_not_too_soon() -> None:
    async with an_edge(**parts(a_check())) as edge:
        await edge.ask(b"GET", b"/i/" + a_token(issued_at=NOW + timedelta(seconds=1)), client=CLIENT)

    assert [event.marks for event in edge.store.events] == [()]


@pytest.mark.parametrize("client", ["127.0.0.1", "10.0.0.3", None])
async def test_an_internal_address_is_not_judged_by_time_or_number(client: str | None) -> None:
    bounds = OfferBounds(
        impression_after=timedelta(seconds=1), impressions=PairCounts(1), clicks=PairCounts(1)
    )
    async with an_edge(**parts(a_check(bounds))) as edge:
        for _ in range(3):
            await edge.ask(b"GET", b"/c/" + a_token(), client=client)

    assert [event.marks for event in edge.store.events] == [()] * 3


async def test_events_beyond_the_bounds_of_an_address_and_a_campaign_are_marked() -> None:
    check = a_check(OfferBounds(impressions=PairCounts(1), clicks=PairCounts(2)))
    tokens = [a_token(issued_at=FAR_BACK, charge=1, slot=slot) for slot in range(3)]
    async with an_edge(**parts(check)) as edge:
        for path in (b"/c/", b"/i/"):
            for token in tokens:
                await edge.ask(b"GET", path + token, client=CLIENT)
        await edge.ask(b"GET", b"/i/" + tokens[2], client="203.0.113.8")

    flood = (Mark.CAMPAIGN_FLOOD,)
    assert [event.marks for event in edge.store.events] == [(), (), flood, (), flood, flood, ()]
    assert [event.client_network for event in edge.store.events if event.marks] == ["203.0.113.0/24"] * 3
    assert check.marked[Mark.CAMPAIGN_FLOOD] == 3


async def test_what_costs_nothing_keeps_nothing_from_being_billed() -> None:
    """Repeated tokens, free offers, the other kind of event, and events without a token fill no bound of the paid."""
    check = a_check(OfferBounds(impressions=PairCounts(2), clicks=PairCounts(2)))
    detector = TrafficDetector(
        lambda _: False, impressions=MinuteCounts(3), clicks=MinuteCounts(2), unbound=MinuteCounts(6)
    )
    paid, more = (a_token(issued_at=FAR_BACK, charge=1, slot=slot) for slot in (0, 1))
    free = [a_token(issued_at=FAR_BACK, slot=slot) for slot in (2, 3)]
    async with an_edge(detector=detector, offer_check=check) as edge:
        for number in range(9):
            await edge.post("impression", a_report(correlationId=str(number)), client=CLIENT)
            await edge.ask(b"GET", b"/i/" + paid, client=CLIENT)
        for token in free:
            await edge.ask(b"GET", b"/c/" + token, client=CLIENT)
        for path in (b"/c/" + paid, b"/c/" + more, b"/i/" + more):
            await edge.ask(b"GET", path, client=CLIENT)

    bound = [event.marks for event in edge.store.events if event.request_id is not None]
    assert bound == [()] * len(bound)
    floods = [Mark.ADDRESS_FLOOD in event.marks for event in edge.store.events if event.request_id is None]
    assert floods == [False] * 6 + [True] * 3


async def test_only_what_is_paid_keeps_others_of_its_kind_from_being_billed_as_a_flood() -> None:
    """A script in a creative reports what it likes in its visitor's name: what comes next must not be free."""
    detector = TrafficDetector(
        lambda agent: b"bot" in agent,
        impressions=MinuteCounts(1),
        clicks=MinuteCounts(1),
        unpaid=MinuteCounts(4),
    )
    async with an_edge(detector=detector, offer_check=a_check(site="news.example")) as edge:

        async def ask(
            path: bytes, slot: int, *, page: str = "https://news.example/", agent: str = "", **named: Any
        ) -> tuple[Mark, ...]:
            said: dict[str, Any] = {"issued_at": FAR_BACK, "charge": 1, **named}
            token = a_token(slot=slot, **said)
            headers = {"referer": page, "user-agent": agent}
            await edge.ask(b"GET", path + token, client=CLIENT, headers=headers)
            return edge.store.events[-1].marks

        for slot in range(3):
            # Doubtful, or too old.
            assert await ask(b"/i/", slot, issued_at=NOW) == (Mark.TOO_SOON,)
            assert await ask(b"/i/", slot, is_void=True) == (Mark.DOUBTFUL_OFFER,)
            assert await ask(b"/i/", slot, page="https://evil.example/") == (Mark.OTHER_SITE,)
            assert await ask(b"/i/", slot, agent="a bot") == (Mark.CRAWLER,)
        # Free, or not what its offer is paid for. These have a bound, too.
        unpaid = [await ask(b"/i/", slot, charge=0) for slot in (3, 4)]
        unpaid.append(await ask(b"/i/", 5, issued_at=NOW - timedelta(hours=1)))
        unpaid += [await ask(b"/i/", slot, charged_by=ChargedBy.CLICK) for slot in (6, 7)]
        impressions = [await ask(b"/i/", slot) for slot in (8, 9)]
        clicks = [await ask(b"/c/", slot, charged_by=ChargedBy.CLICK) for slot in (10, 11)]

    flood = (Mark.ADDRESS_FLOOD,)
    assert unpaid == [(), (), (Mark.TOKEN_EXPIRED,), (), flood]
    assert impressions == clicks == [(), flood]


async def test_reports_that_are_repeated_after_a_marked_one_or_from_elsewhere_do_count() -> None:
    """Else one who reports each click twice would have no bound."""
    bounds = OfferBounds(click_after=timedelta(seconds=1), clicks=PairCounts(1))
    async with an_edge(**parts(a_check(bounds))) as edge:
        tokens = [a_token(issued_at=NOW, charge=1, slot=slot) for slot in range(3)]
        for token in tokens:
            await edge.ask(b"GET", b"/c/" + token, client=CLIENT)
        edge.clock.advance(timedelta(seconds=2))
        for client in (CLIENT, CLIENT, "203.0.113.8"):
            for token in tokens:
                await edge.ask(b"GET", b"/c/" + token, client=client)

    flood, once = (Mark.CAMPAIGN_FLOOD,), [(), (Mark.CAMPAIGN_FLOOD,), (Mark.CAMPAIGN_FLOOD,)]
    marks = [event.marks for event in edge.store.events]
    assert marks == [(Mark.TOO_SOON,)] * 3 + once + [flood] * 3 + once


async def test_an_event_that_is_marked_or_expired_counts_for_no_bound() -> None:
    check = a_check(OfferBounds(impressions=PairCounts(1)))
    old = a_token(issued_at=NOW - timedelta(hours=1))
    async with an_edge(**parts(check)) as edge:
        await edge.ask(b"GET", b"/i/" + a_token(), client=CLIENT, headers={"user-agent": "a bot"})
        await edge.ask(b"GET", b"/i/" + old, client=CLIENT)
        await edge.ask(b"GET", b"/i/" + a_token(), client=CLIENT)

    assert [event.marks for event in edge.store.events] == [(Mark.CRAWLER,), (Mark.TOKEN_EXPIRED,), ()]


@pytest.mark.parametrize(
    ("site", "headers", "page_url", "marks"),
    [
        ("news.example", {"referer": "https://news.example/"}, None, ()),
        ("news.example", {"origin": "https://www.news.example"}, "https://news.example/a", ()),
        ("news.example", {}, None, ()),
        ("news.example", {"origin": "https://evil.example"}, "https://news.example/", (Mark.OTHER_SITE,)),
        ("news.example", {}, "https://evil.example/", (Mark.OTHER_SITE,)),
        (None, {"referer": "https://evil.example/"}, "https://evil.example/", ()),
    ],
)
async def test_a_report_of_another_site_than_the_placements_is_marked(
    site: str | None, headers: dict[str, str], page_url: str | None, marks: tuple[Mark, ...]
) -> None:
    async with an_edge(**parts(a_check(site=site))) as edge:
        body = a_report(trackingToken=a_token(issued_at=FAR_BACK).decode(), pageUrl=page_url)
        # An undeclared proxy says nothing about the page.
        for client in (CLIENT, "127.0.0.1"):
            await edge.post("impression", body, headers=headers, client=client)

    assert [event.marks for event in edge.store.events] == [marks] * 2


async def test_a_report_of_an_offer_for_a_doubtful_sender_is_marked_whoever_sends_it() -> None:
    async with an_edge(**parts(a_check())) as edge:
        events = await report_all(edge, a_token(issued_at=FAR_BACK, is_void=True), client="127.0.0.1")

    assert [event.marks for event in events] == [(Mark.DOUBTFUL_OFFER,)] * 5
    assert not any(event.is_valid for event in events)


async def test_a_marked_report_does_not_take_the_name_of_a_good_one() -> None:
    token = a_token(issued_at=issued(0))
    async with an_edge(**parts(a_check())) as edge:
        await edge.ask(b"GET", b"/i/" + token, client=CLIENT)
        edge.clock.advance(timedelta(seconds=1))
        await edge.ask(b"GET", b"/i/" + token, client=CLIENT)

    first, second = edge.store.events
    assert first.correlation_id == f"{second.correlation_id}:flagged"
    assert (first.is_billable, second.is_billable) == (False, True)


def test_all_these_marks_keep_an_event_from_being_billed() -> None:
    assert set(MARKS) <= set(INVALIDATING_MARKS)
