"""Events without a token: they are shown, not believed, and change nothing about an offer."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import ForbiddenError, UnauthenticatedError
from adloom.core.ids import PlacementId
from adloom.events.ingest.api import ACCEPTED
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.log.event import Conversion, Event, Mark
from adloom.events.ports import DecodedEntry
from adloom.events.tables.apply_batch import Additions, TableState, apply_batch, count_by_key, split_by_kind
from adloom.runtime.http.fast.fast_routes import FastRequest
from tests.events.builders import BANNER, CAMPAIGN, PLACEMENT, REQUEST, a_token
from tests.events.edge import Edge, a_report, an_edge

OFFER_NAME = f"offer:{REQUEST}:0"
CRAWLER = {"user-agent": "a crawler"}
OTHER_PLACEMENT = PlacementId(UUID("01890000-0000-7000-8000-0000000000d2"))
KEYS = TableState(banners={BANNER.int: 1}, placements={PLACEMENT.int: 2}, campaigns={CAMPAIGN.int: 3})
TOKEN = a_token(charge=10_000).decode()

names = st.sampled_from([OFFER_NAME, f"{OFFER_NAME}:flagged", f"offer:{REQUEST}:1", "k:one", "c:one", "one"])
kinds = st.sampled_from(["impression", "click"])
bound = st.tuples(st.just(TOKEN), kinds, names, st.booleans())
unbound = st.tuples(st.none(), kinds, names, st.booleans())


async def send(edge: Edge, reports: Sequence[tuple[str | None, str, str, bool]]) -> list[Event]:
    for token, kind, name, is_crawler in reports:
        report = a_report(correlationId=name, **({"trackingToken": token} if token else {}))
        answer = await edge.post(kind, report, headers=CRAWLER if is_crawler else None)
        assert answer is ACCEPTED
    return edge.store.events


def apply(events: Sequence[Event], known: TableState = KEYS) -> Additions:
    records = [DecodedEntry(f"{number}-0", event) for number, event in enumerate(events, start=1)]
    return apply_batch(split_by_kind(records), known)


def describe_bound(added: Additions) -> list[Any]:
    """What the tables have of the offers, without the place in the log."""
    rows = [*(("impression", row) for row in added.impressions), *(("click", row) for row in added.clicks)]
    return [
        (kind, msgspec.structs.replace(row, entry_id=""))
        for kind, row in rows
        if row.event.request_id is not None
    ]


def count_all(added: Additions) -> dict[str, int]:
    counts = count_by_key(added).values()
    return {
        name: sum(getattr(one, name) for one in counts)
        for name in ("impressions", "clicks", "invalid_impressions", "invalid_clicks")
    }


@given(st.lists(st.one_of(bound, unbound), max_size=12))
def test_an_event_without_a_token_changes_nothing_about_an_offer(
    reports: list[tuple[str | None, str, str, bool]],
) -> None:
    async def run() -> tuple[Additions, Additions]:
        added: list[Additions] = []
        for sent in (reports, [one for one in reports if one[0] is not None]):
            async with an_edge(detector=TrafficDetector(lambda agent: agent == b"a crawler")) as edge:
                added.append(apply(await send(edge, sent)))
        return added[0], added[1]

    mixed, alone = asyncio.run(run())

    assert describe_bound(mixed) == describe_bound(alone)
    assert count_all(mixed) == count_all(alone)


@given(st.permutations([True, False, True]), names, names)
def test_an_offer_has_one_good_event_of_a_kind(order: list[bool], first: str, second: str) -> None:
    reports = [
        (TOKEN, "impression", name, is_crawler)
        for is_crawler, name in zip(order, [first, second, first], strict=True)
    ]

    async def run() -> Additions:
        async with an_edge(detector=TrafficDetector(lambda agent: agent == b"a crawler")) as edge:
            return apply(await send(edge, reports))

    rows = asyncio.run(run()).impressions

    assert [row.event.correlation_id for row in rows if row.is_valid] == [OFFER_NAME]


async def test_an_unbound_event_is_marked_and_counted_apart() -> None:
    async with an_edge() as edge:
        added = apply(await send(edge, [(None, "impression", "a", False), (None, "click", "a", False)]))

    [count] = count_by_key(added).values()
    assert [list(row.marks) for row in (*added.impressions, *added.clicks)] == [[Mark.UNBOUND]] * 2
    assert not any(row.is_valid for row in (*added.impressions, *added.clicks))
    assert (count.impressions, count.clicks, count.invalid_impressions, count.invalid_clicks) == (0, 0, 0, 0)
    assert (count.unbound_impressions, count.unbound_clicks) == (1, 1)


async def test_ids_that_do_not_belong_together_are_marked_and_not_counted() -> None:
    async with an_edge() as edge:
        edge.index.assigned = False
        added = apply(await send(edge, [(None, "impression", "a", False)]))

    assert [list(row.marks) for row in added.impressions] == [[Mark.UNBOUND, Mark.NOT_ASSIGNED]]
    assert count_by_key(added) == {}


async def test_a_name_of_ours_is_not_given_to_an_event_without_a_token() -> None:
    async with an_edge() as edge:
        events = await send(
            edge, [(None, "impression", name, False) for name in (OFFER_NAME, "k:one", "c:one", "one")]
        )

    first, second, third, plain = (event.correlation_id for event in events)
    assert all(name.startswith("c:") and len(name) <= 128 for name in (first, second, third))
    assert len({first, second, third}) == 3
    assert plain == "one"


async def test_unbound_events_can_be_refused() -> None:
    async with an_edge(refuses_unbound=True) as edge:
        with pytest.raises(ForbiddenError) as refused:
            await edge.post("impression", a_report())
        await edge.post("impression", a_report(trackingToken=TOKEN))

    assert refused.value.code == "TRACKING_TOKEN_REQUIRED"
    assert [event.request_id for event in edge.store.events] == [REQUEST]


class FakeReporters:
    """Knows one key, which may report for one placement."""

    def is_conversion_reporter(self, request: FastRequest, campaign_id: UUID) -> bool:
        assert campaign_id == CAMPAIGN
        return b"x-api-key" in dict(request.headers)

    def is_reporter(self, request: FastRequest, placement_id: UUID) -> bool:
        key = dict(request.headers).get(b"x-api-key")
        if key is None:
            return False
        if key != b"adk_right":
            raise UnauthenticatedError("The API key is not valid: it may have been revoked.")
        assert placement_id in {PLACEMENT, OTHER_PLACEMENT}
        return True


async def test_what_a_server_reports_with_a_key_is_counted_and_moves_no_caps() -> None:
    async with an_edge(reporters=FakeReporters(), refuses_unbound=True) as edge:
        await edge.post("impression", a_report(correlationId="n" * 128), headers={"x-api-key": "adk_right"})
        await edge.post("click", a_report(), headers={"x-api-key": "adk_right"})
        with pytest.raises(UnauthenticatedError):
            await edge.post("impression", a_report(), headers={"x-api-key": "adk_wrong"})

    added = apply(edge.store.events)
    [count] = count_by_key(added).values()
    assert (count.impressions, count.invalid_impressions, count.unbound_impressions) == (1, 1, 0)
    assert (count.clicks, count.invalid_clicks, count.unbound_clicks) == (1, 1, 0)
    assert {row.marks for row in (*added.impressions, *added.clicks)} == {("without_offer",)}
    assert [row.event.correlation_id for row in added.clicks] == [f"k:{PLACEMENT}:one"]
    assert len(added.impressions[0].event.correlation_id) <= 128


async def test_a_conversion_says_whether_it_came_with_a_key() -> None:
    report = {"type": "conversion", "correlationId": "order-1", "trackingToken": TOKEN}
    async with an_edge(reporters=FakeReporters()) as edge:
        for headers in ({}, {"x-api-key": "adk_right"}):
            await edge.post("batch", {"events": [report]}, headers=headers)

    assert [one.by_key for one in edge.store.reports if isinstance(one, Conversion)] == [False, True]


async def test_nobody_takes_the_name_of_a_server_s_event() -> None:
    right = {"x-api-key": "adk_right"}
    async with an_edge(reporters=FakeReporters()) as edge:
        edge.index.placements = {PLACEMENT, OTHER_PLACEMENT}
        for name in ("one", "k:one", f"k:{PLACEMENT}:one"):
            await edge.post("impression", a_report(correlationId=name))
        await edge.post("impression", a_report(placementId=OTHER_PLACEMENT), headers=right)
        await edge.post("impression", a_report(), headers=right)
        events = edge.store.events

    placements = {**KEYS.placements, OTHER_PLACEMENT.int: 9}
    counts = count_by_key(apply(events, msgspec.structs.replace(KEYS, placements=placements)))
    found = {key.placement_id: (one.impressions, one.unbound_impressions) for key, one in counts.items()}
    assert found == {2: (1, 3), 9: (1, 0)}
