"""Batches by their handler: each event is accepted or rejected by itself, and the accepted ones are durable together."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import UnavailableError, ValidationFailedError
from adloom.events.ingest.accept import ClickRequest, RequestInfo
from adloom.events.ingest.batch import (
    COMMAS_MAX,
    EVENTS_MAX,
    SLICE_EVENTS,
    BatchReport,
    BatchSlicer,
    ReportBatch,
    decode_report,
    split_batch,
)
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.events.log.append import EventAppender
from adloom.events.log.event import Click, Conversion, Impression, Mark
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import FastAnswer
from tests.events.builders import REQUEST, UNKNOWN_ID, a_token
from tests.events.edge import Edge, MemoryStore, a_report, an_edge


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    async with an_edge() as one:
        yield one


def an_event(kind: object = "impression", **fields: Any) -> dict[str, Any]:
    return {"type": kind, **a_report(**fields)}


def events(count: int) -> list[dict[str, Any]]:
    return [an_event(("impression", "click")[n % 2], correlationId=f"{n}") for n in range(count)]


async def post_batch(edge: Edge, *listed: Any, **around: Any) -> dict[str, Any]:
    answer = await edge.post("batch", {"events": list(listed)}, **around)
    assert answer.head.startswith(b"HTTP/1.1 202 Accepted\r\n")
    return msgspec.json.decode(answer.body)


async def test_events_of_both_kinds_are_in_the_log_in_their_order(edge: Edge) -> None:
    outcome = await post_batch(
        edge,
        an_event(correlationId="a", referrerUrl="https://search.example/"),
        an_event("click", correlationId="b", destinationUrl="https://shop.example/"),
    )

    assert outcome == {"accepted": 2, "rejected": []}
    impression, click = edge.store.events
    assert isinstance(impression, Impression)
    assert isinstance(click, Click)
    assert (impression.correlation_id, impression.referrer_url) == ("a", "https://search.example/")
    assert (click.correlation_id, click.destination_url) == ("b", "https://shop.example/")


@pytest.mark.parametrize("count", [0, 1, SLICE_EVENTS, SLICE_EVENTS + 1, EVENTS_MAX])
async def test_a_batch_of_the_largest_size_is_accepted(edge: Edge, count: int) -> None:
    outcome = await post_batch(edge, *events(count))

    assert outcome == {"accepted": count, "rejected": []}
    assert [event.correlation_id for event in edge.store.events] == [f"{n}" for n in range(count)]
    assert (edge.routes.batched, edge.routes.batch_rejected) == (count, 0)


@pytest.mark.parametrize(
    ("bad", "code", "named"),
    [
        (an_event(bannerId=UNKNOWN_ID), "BANNER_NOT_FOUND", str(UNKNOWN_ID)),
        (an_event(placementId=UNKNOWN_ID), "PLACEMENT_NOT_FOUND", str(UNKNOWN_ID)),
        (an_event(campaignId=UNKNOWN_ID), "CAMPAIGN_NOT_FOUND", str(UNKNOWN_ID)),
        (an_event(trackingToken="nonsense"), "TRACKING_TOKEN_INVALID", "token"),
        (a_report(), "VALIDATION_FAILED", "type: Expected `impression`, `click` or `conversion`."),
        (an_event("view"), "VALIDATION_FAILED", "type: Expected `impression`, `click` or `conversion`."),
        (an_event(None), "VALIDATION_FAILED", "type: Expected `impression`, `click` or `conversion`."),
        (
            an_event(["impression"]),
            "VALIDATION_FAILED",
            "type: Expected `impression`, `click` or `conversion`.",
        ),
        ({"type": "click"}, "VALIDATION_FAILED", "correlationId: This field is required."),
        (an_event(correlationId="a\0b"), "VALIDATION_FAILED", "correlationId: The character U+0000"),
        (an_event(correlationId="x" * 129, userId="y"), "VALIDATION_FAILED", "userId: Invalid UUID."),
        (an_event(occurredAt="yesterday"), "VALIDATION_FAILED", "occurredAt: "),
        (7, "VALIDATION_FAILED", "The event must be a JSON object."),
        (None, "VALIDATION_FAILED", "The event must be a JSON object."),
        ([an_event()], "VALIDATION_FAILED", "The event must be a JSON object."),
    ],
)
async def test_a_bad_event_is_reported_by_its_index_and_good_ones_are_accepted(
    edge: Edge, bad: Any, code: str, named: str
) -> None:
    outcome = await post_batch(edge, an_event(correlationId="a"), bad, an_event(correlationId="b"))

    assert outcome["accepted"] == 2
    [rejected] = outcome["rejected"]
    assert (rejected["index"], rejected["errorCode"]) == (1, code)
    assert named in rejected["message"]
    assert [event.correlation_id for event in edge.store.events] == ["a", "b"]
    assert (edge.routes.batched, edge.routes.batch_rejected) == (2, 1)


async def test_conversions_come_with_other_events_and_are_judged_alone(edge: Edge) -> None:
    order = {"type": "conversion", "correlationId": "order-1", "value": "9.99", "currency": "eur"}

    outcome = await post_batch(
        edge,
        {**order, "trackingToken": a_token(slot=4).decode()},
        {**order, "trackingToken": "forged"},
        {**order, "trackingToken": a_token().decode(), "value": -1},
        {"type": "conversion", "correlationId": "order-2"},
        an_event(correlationId="a"),
    )

    conversion, impression = edge.store.reports
    assert isinstance(conversion, Conversion)
    assert (conversion.slot, conversion.value, conversion.currency) == (4, 9_990_000, "EUR")
    assert isinstance(impression, Impression)
    assert outcome["accepted"] == 2
    assert [(one["index"], one["errorCode"]) for one in outcome["rejected"]] == [
        (1, "TRACKING_TOKEN_INVALID"),
        (2, "VALIDATION_FAILED"),
        (3, "VALIDATION_FAILED"),
    ]
    assert "value: Expected a number" in outcome["rejected"][1]["message"]
    assert "trackingToken: This field is required." in outcome["rejected"][2]["message"]


async def test_a_batch_of_only_bad_events_is_answered_too(edge: Edge) -> None:
    outcome = await post_batch(edge, 1, "two", {})

    assert outcome["accepted"] == 0
    assert [rejected["index"] for rejected in outcome["rejected"]] == [0, 1, 2]
    assert edge.store.entries == []


async def test_an_event_that_is_not_utf8_is_rejected_alone(edge: Edge) -> None:
    good = msgspec.json.encode(an_event())
    bad = good.replace(b'"one"', b'"\xff"')

    answer = await edge.post("batch", b'{"events":[' + bad + b"," + good + b"]}")

    outcome = msgspec.json.decode(answer.body)
    assert outcome["accepted"] == 1
    assert outcome["rejected"][0]["message"].startswith("The event is not JSON that can be read")


async def test_the_last_of_two_type_fields_counts(edge: Edge) -> None:
    event = b'{"type":"click",' + msgspec.json.encode(an_event())[1:]

    await edge.post("batch", b'{"events":[' + event + b"]}")

    assert isinstance(edge.store.events[0], Impression)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"events":null}',
        b'{"events":{}}',
        b'{"events":"x"}',
        b'{"events":[],"events":7}',
        b'{"events":[' + b"1," * EVENTS_MAX + b"1]}",
        b'{"events":[' + b"1," * 10_000 + b"1]}",
        b'{"events":[' + b"1," * 524_000 + b"1]}",
        b'{"events":[' + b",".join([msgspec.json.encode(an_event())] * (EVENTS_MAX + 1)) + b"]}",
        b' {"events":[' + b"{}," * EVENTS_MAX + b"{}]}",
        b"," * (COMMAS_MAX + 1),
    ],
)
async def test_a_batch_with_too_many_events_or_without_a_list_is_rejected(edge: Edge, body: bytes) -> None:
    with pytest.raises(ValidationFailedError) as refused:
        await edge.post("batch", body)

    assert [(problem.field, problem.message) for problem in refused.value.errors] == [
        ("events", "Expected a list of at most 500 events.")
    ]
    assert edge.store.entries == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"events":[',
        b'{"events":[{"type":"impression"]}',
        b'{"events":[' + b"[" * 500_000 + b"]" * 500_000 + b"]}",
        b'{"events":[{"type":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]}",
        b"\xef\xbb\xbf{}",
    ],
)
async def test_a_batch_that_cannot_be_decoded_is_rejected(edge: Edge, body: bytes) -> None:
    with pytest.raises(ValidationFailedError) as refused:
        await edge.post("batch", body)

    assert refused.value.detail.startswith("The body ")
    assert edge.store.entries == []


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("type"), inner),
    max_leaves=8,
)


@given(st.binary() | st.lists(json_values).map(lambda listed: msgspec.json.encode({"events": listed})))
def test_no_event_causes_an_error_other_than_a_rejection(body: bytes) -> None:
    try:
        listed = split_batch(body)
    except ValidationFailedError:
        return
    batch = ReportBatch(listed, accept_anything)

    batch.process(EVENTS_MAX)

    assert batch.is_finished
    assert len(batch.entries) + len(batch.rejected) == len(listed)


def accept_anything(report: BatchReport) -> bytes:
    return report.correlation_id.encode()


names = st.sampled_from([field.encode_name for field in msgspec.structs.fields(ClickRequest)])


@given(st.dictionaries(names, json_values | st.just("x")))
def test_an_event_of_a_batch_is_decoded_as_by_its_own_route(fields: dict[str, Any]) -> None:
    event = msgspec.json.encode(an_event("click", **fields))

    try:
        alone = BodyDecoder(ClickRequest).decode(event)
    except ValidationFailedError as refused:
        with pytest.raises(ValidationFailedError) as refused_here:
            decode_report(event)
        assert refused_here.value.errors == refused.errors  # noqa: PT017 - refused twice, for the same
    else:
        assert decode_report(event) == alone


# --- context of the request


async def test_the_request_is_examined_once_for_all_events() -> None:
    asked: list[bytes] = []

    def read_info(request: Any) -> RequestInfo:
        asked.append(request.path)
        return RequestInfo("tablet", "FR")

    async with an_edge(
        read_request_info=read_info, detector=TrafficDetector(lambda agent: agent == b"bot")
    ) as edge:
        await post_batch(edge, an_event(), an_event(deviceType="tv"), headers={"user-agent": "bot"})

    assert [event.device_type for event in edge.store.events] == ["tablet", "tv"]
    assert [event.country_code for event in edge.store.events] == ["FR", "FR"]
    assert [event.marks for event in edge.store.events] == [(Mark.UNBOUND, Mark.CRAWLER)] * 2
    assert len(asked) == 1


async def test_only_accepted_events_count_towards_a_flood() -> None:
    detector = TrafficDetector(lambda _: False, unbound=MinuteCounts(3))
    async with an_edge(detector=detector) as edge:
        await edge.post("impression", a_report(), client="203.0.113.7")
        await post_batch(edge, *events(2), 7, *events(2), client="203.0.113.7")
        await post_batch(edge, *events(1), client="203.0.113.8")

    flooded = [Mark.ADDRESS_FLOOD in event.marks for event in edge.store.events]
    assert flooded == [False, False, False, True, True, False]
    assert [event.client_network for event in edge.store.events][2:4] == [None, "203.0.113.0/24"]
    assert detector.marked[Mark.ADDRESS_FLOOD] == 2


async def test_an_event_with_a_token_belongs_to_its_offer(edge: Edge) -> None:
    await post_batch(edge, an_event("click", trackingToken=a_token(slot=4).decode()))

    [event] = edge.store.events
    assert (event.request_id, event.slot, event.is_billable) == (REQUEST, 4, True)


# --- the bounds of the queue, and of the loop


@pytest.mark.parametrize("count", [SLICE_EVENTS, EVENTS_MAX])
async def test_a_batch_that_does_not_fit_is_refused_whole(count: int) -> None:
    async with an_edge(pending_max=count - 1) as edge:
        with pytest.raises(UnavailableError):
            await edge.post("batch", {"events": events(count)})
        await edge.post("batch", {"events": events(count - 1)})

    assert len(edge.store.entries) == count - 1
    assert edge.routes.batched == count - 1


async def test_other_requests_are_answered_while_a_large_batch_is_processed(edge: Edge) -> None:
    finished: list[str] = []

    async def report(kind: str, body: Any) -> None:
        await edge.post(kind, body)
        finished.append(kind)

    async with asyncio.TaskGroup() as group:
        group.create_task(report("batch", {"events": events(EVENTS_MAX)}))
        group.create_task(report("impression", a_report(correlationId="meanwhile")))

    assert finished == ["impression", "batch"]
    assert edge.store.events[0].correlation_id == "meanwhile"


async def test_large_batches_are_processed_in_slices_one_after_another() -> None:
    judged: list[str] = []

    def a_batch(name: str) -> ReportBatch:
        def accept(report: BatchReport) -> bytes:
            judged.append(name)
            return report.correlation_id.encode()

        return ReportBatch(split_batch(msgspec.json.encode({"events": events(4)})), accept)

    def finished(batch: ReportBatch) -> asyncio.Future[FastAnswer]:
        done: asyncio.Future[FastAnswer] = asyncio.get_running_loop().create_future()
        done.set_result(batch.build_answer())
        return done

    slicer = BatchSlicer(slice_events=3, waiting_max=2)
    first, second = a_batch("first"), a_batch("second")
    answers = [slicer.run(batch, lambda batch=batch: finished(batch)) for batch in (first, second)]
    with pytest.raises(UnavailableError):
        slicer.run(a_batch("third"), lambda: finished(first))
    await asyncio.sleep(0)

    assert judged == ["first"] * 3
    assert [(await answer).body for answer in answers] == [b'{"accepted":4,"rejected":[]}'] * 2
    assert judged == ["first"] * 4 + ["second"] * 4


async def test_an_error_in_a_batch_reaches_only_its_own_client() -> None:
    def fail(report: BatchReport) -> bytes:
        raise RuntimeError(report.correlation_id)

    def nothing() -> asyncio.Future[FastAnswer]:
        done: asyncio.Future[FastAnswer] = asyncio.get_running_loop().create_future()
        done.set_result(FastAnswer(b""))
        return done

    slicer = BatchSlicer()
    listed = split_batch(msgspec.json.encode({"events": events(1)}))
    broken = slicer.run(ReportBatch(listed, fail), nothing)
    whole = slicer.run(ReportBatch(listed, accept_anything), nothing)

    with pytest.raises(RuntimeError):
        await broken
    assert await whole == FastAnswer(b"")


async def test_a_batch_is_answered_only_when_all_of_it_is_durable() -> None:
    class SlowStore(MemoryStore):
        may_go_on = asyncio.Event()

        async def append(self, entries: Sequence[bytes]) -> None:
            await super().append(entries)
            await self.may_go_on.wait()

    store = SlowStore()
    async with EventAppender(store, batch_max=10) as appender, asyncio.TaskGroup() as group:
        asked = group.create_task(Edge(store, appender).post("batch", {"events": events(11)}))
        await asyncio.sleep(0.01)
        was_done = asked.done()
        store.may_go_on.set()

    assert not was_done
    assert asked.result().body == b'{"accepted":11,"rejected":[]}'
    assert len(store.entries) == 11
