"""The event routes by their handlers: what is accepted, what is rejected, and where a click leads."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import AdloomError, UnavailableError, ValidationFailedError
from adloom.core.ids import BannerId
from adloom.events.ingest.accept import ImpressionRequest, RequestInfo
from adloom.events.ingest.api import ACCEPTED, PIXEL
from adloom.events.log.append import EventAppender
from adloom.events.log.event import Click, Impression, Mark
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import FastRequest
from tests.events.builders import BANNER, CAMPAIGN, NOW, PLACEMENT, REQUEST, UNKNOWN_ID, FakeIndex, a_token
from tests.events.edge import Edge, MemoryStore, a_report, an_edge
from tests.support.for_each import for_each


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    async with an_edge() as one:
        yield one


async def test_an_accepted_impression_is_in_the_log(edge: Edge) -> None:
    answer = await edge.post(
        "impression",
        a_report(
            sessionId="s",
            userId=str(REQUEST),
            deviceType="mobile",
            countryCode="de",
            pageUrl="https://pub.example/a",
            referrerUrl="https://search.example/",
            occurredAt="2026-11-15T12:59:00+01:00",
            unknown={"is": "ignored"},
        ),
    )

    assert answer is ACCEPTED
    assert edge.store.events == [
        Impression(
            correlation_id="one",
            banner_id=BANNER,
            placement_id=PLACEMENT,
            campaign_id=CAMPAIGN,
            occurred_at=NOW - timedelta(minutes=1),
            received_at=NOW,
            session_id="s",
            user_id=REQUEST,
            device_type="mobile",
            country_code="DE",
            page_url="https://pub.example/a",
            referrer_url="https://search.example/",
            marks=(Mark.UNBOUND,),
        )
    ]


async def test_an_accepted_click_is_in_the_log(edge: Edge) -> None:
    await edge.post("click", a_report(campaignId=None, destinationUrl="https://shop.example/"))

    [click] = edge.store.events
    assert isinstance(click, Click)
    assert (click.campaign_id, click.destination_url, click.occurred_at) == (
        None,
        "https://shop.example/",
        NOW,
    )


async def test_an_impossible_time_is_replaced_and_marked(edge: Edge) -> None:
    await edge.post("impression", a_report(occurredAt="0001-01-01T00:00:00+14:00"))

    [event] = edge.store.events
    assert (event.occurred_at, event.marks) == (NOW, (Mark.OCCURRED_AT_REPLACED, Mark.UNBOUND))


@pytest.mark.parametrize("kind", ["impression", "click", "batch"])
async def test_an_event_cannot_happen_before_its_offer(edge: Edge, kind: str) -> None:
    token = a_token(issued_at=NOW - timedelta(minutes=10)).decode()
    for minutes in (15, 16):  # A browser's clock may be wrong by five.
        moment = (NOW - timedelta(minutes=minutes)).isoformat()
        report = a_report(trackingToken=token, occurredAt=moment)
        await edge.post(kind, {"events": [{"type": "click", **report}]} if kind == "batch" else report)

    near, early = edge.store.events
    assert (near.occurred_at, near.marks) == (NOW - timedelta(minutes=15), ())
    assert (early.occurred_at, early.marks) == (NOW, (Mark.OCCURRED_AT_REPLACED,))
    assert early.is_billable


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"correlationId": ""}, ["correlationId"]),
        ({"correlationId": "x" * 129}, ["correlationId"]),
        ({"correlationId": "a\0b"}, ["correlationId"]),
        ({"correlationId": 7, "bannerId": "x", "userId": "y"}, ["correlationId", "bannerId", "userId"]),
        ({"placementId": None}, ["placementId"]),
        ({"occurredAt": "2026-11-15T12:00:00"}, ["occurredAt"]),
        ({"occurredAt": "yesterday"}, ["occurredAt"]),
        ({"countryCode": "DEU"}, ["countryCode"]),
        ({"countryCode": "ßß"}, ["countryCode"]),
        ({"countryCode": "D\n"}, ["countryCode"]),
        ({"sessionId": "s" * 129}, ["sessionId"]),
        ({"deviceType": "d" * 21}, ["deviceType"]),
        ({"pageUrl": "p" * 8193}, ["pageUrl"]),
        ({"trackingToken": 1}, ["trackingToken"]),
    ],
)
async def test_every_wrong_field_is_named(edge: Edge, change: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(AdloomError) as refused:
        await edge.post("impression", a_report(**change))

    assert refused.value.code == "VALIDATION_FAILED"
    assert [problem.field for problem in refused.value.errors] == fields
    assert all(problem.message for problem in refused.value.errors)
    assert edge.store.entries == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"correlationId": "',
        b"[]",
        b"null",
        b'{"a": "\xff"}',
        b'{"a": ' + b"[" * 60_000,
        b"\xef\xbb\xbf{}",
    ],
)
async def test_a_body_that_is_not_an_object_is_rejected(edge: Edge, body: bytes) -> None:
    with pytest.raises(AdloomError) as refused:
        await edge.post("impression", body)

    assert refused.value.code == "VALIDATION_FAILED"


@pytest.mark.parametrize("token", [{}, {"trackingToken": a_token().decode()}], ids=["unbound", "bound"])
@pytest.mark.parametrize("kind", ["impression", "click"])
async def test_of_a_repeated_field_the_last_value_counts(
    edge: Edge, kind: str, token: dict[str, str]
) -> None:
    report = a_report(campaignId=str(CAMPAIGN), occurredAt="2026-11-15T12:59:00+01:00", **token)
    body = msgspec.json.encode(report)

    for name in report:
        for value in (b'"x"', b"5", b"[]", b'"%b"' % str(UNKNOWN_ID).encode()):
            first, last = b'"%b":%b' % (name.encode(), value), b",%b}" % body[1:-1]
            assert await edge.post(kind, b"{" + first + last) is ACCEPTED

            if value == b"[]":
                with pytest.raises(ValidationFailedError) as refused:
                    await edge.post(kind, b"{" + last[1:-1] + b"," + first + b"}")
                assert [problem.field for problem in refused.value.errors] == [name]

    first_event, *others = edge.store.events
    assert all(event == first_event for event in others)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text() | st.just(str(BANNER)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
names = (
    st.sampled_from([field.encode_name for field in msgspec.structs.fields(ImpressionRequest)]) | st.text()
)


@given(
    body=st.binary()
    | st.dictionaries(names, json_values).map(msgspec.json.encode)
    | json_values.map(msgspec.json.encode)
)
def test_no_body_causes_an_error_other_than_a_rejection(body: bytes) -> None:
    decoder = BodyDecoder(ImpressionRequest)

    with contextlib.suppress(ValidationFailedError):
        assert decoder.decode(body).correlation_id


@pytest.mark.parametrize(
    "ignored", [b'"z":1e9999', b'"z":"\xff"', b'"\xff":1', b'"z":' + b"[" * 500 + b"]" * 500]
)
async def test_unknown_fields_are_not_decoded(edge: Edge, ignored: bytes) -> None:
    body = msgspec.json.encode(a_report()).removesuffix(b"}") + b',"y":"\\u0000",' + ignored + b"}"

    assert await edge.post("impression", body) is ACCEPTED


# --- tokens


@pytest.mark.parametrize(
    "ids",
    [
        {},
        {"campaignId": None},
        {"bannerId": str(BANNER).upper(), "placementId": PLACEMENT.hex, "campaignId": CAMPAIGN.hex.upper()},
    ],
)
async def test_an_event_with_a_token_belongs_to_its_offer_and_is_billable(
    edge: Edge, ids: dict[str, str | None]
) -> None:
    await edge.post("impression", a_report(**ids, trackingToken=a_token(slot=2).decode()))

    [event] = edge.store.events
    assert (event.request_id, event.slot, event.campaign_id) == (REQUEST, 2, CAMPAIGN)
    assert event.is_billable


@pytest.mark.parametrize("path", [b"/i/", b"/c/"])
async def test_a_pixel_and_a_link_belong_to_the_slot_of_their_offer(edge: Edge, path: bytes) -> None:
    await edge.ask(b"GET", path + a_token(slot=5))

    [event] = edge.store.events
    assert (event.request_id, event.slot) == (REQUEST, 5)


async def test_an_event_without_a_token_has_no_offer(edge: Edge) -> None:
    await edge.post("impression", a_report())

    [event] = edge.store.events
    assert (event.request_id, event.slot, event.is_billable) == (None, None, False)


@pytest.mark.parametrize("token", ["nonsense", "", "ü" * 58, a_token(banner=BannerId(UNKNOWN_ID)).decode()])
async def test_a_token_that_is_forged_or_of_another_offer_is_rejected(edge: Edge, token: str) -> None:
    with pytest.raises(AdloomError) as refused:
        await edge.post("click", a_report(trackingToken=token))

    assert (refused.value.code, refused.value.status) == ("TRACKING_TOKEN_INVALID", 403)
    assert edge.store.entries == []


# --- context of the request


def german_phone(request: FastRequest) -> RequestInfo:
    assert request.path
    return RequestInfo("mobile", "DE")


@for_each(
    ("reported", "kept"),
    [
        ({}, ("mobile", "DE")),
        ({"deviceType": "fridge"}, ("fridge", "DE")),
        ({"countryCode": "at"}, ("mobile", "AT")),
        ({"deviceType": "tv", "countryCode": "T1"}, ("tv", "T1")),
    ],
)
@for_each("kind", ["impression", "click"])
async def test_missing_fields_of_a_report_are_taken_from_the_request(
    kind: str, reported: dict[str, str], kept: tuple[str, str]
) -> None:
    async with an_edge(read_request_info=german_phone) as edge:
        await edge.post(kind, a_report(**reported))

    [event] = edge.store.events
    assert (event.device_type, event.country_code) == kept


@pytest.mark.parametrize("path", [b"/i/", b"/c/"])
async def test_a_pixel_and_a_link_take_device_and_country_from_the_request(path: bytes) -> None:
    async with an_edge(read_request_info=german_phone) as edge:
        await edge.ask(b"GET", path + a_token())

    [event] = edge.store.events
    assert (event.device_type, event.country_code) == ("mobile", "DE")


# --- the pixel and the link


async def test_the_pixel_is_a_small_uncached_gif_and_its_event_is_named_by_its_offer(edge: Edge) -> None:
    for _ in range(2):
        answer = await edge.ask(b"GET", b"/i/" + a_token(slot=3))

        assert answer is PIXEL
    assert len(PIXEL.body) == 43
    assert PIXEL.body.startswith(b"GIF89a")
    assert b"cache-control: no-store\r\n" in PIXEL.head
    assert {event.correlation_id for event in edge.store.events} == {f"offer:{REQUEST}:3"}
    assert all(isinstance(event, Impression) and event.is_billable for event in edge.store.events)


async def test_the_link_leads_to_the_destination_of_the_index(edge: Edge) -> None:
    answer = await edge.ask(b"GET", b"/c/" + a_token())

    assert answer.head.startswith(b"HTTP/1.1 302 Found\r\n")
    assert b"\r\nlocation: https://shop.example/?utm_source=a\r\n" in answer.head
    [click] = edge.store.events
    assert isinstance(click, Click)
    assert click.destination_url == "https://shop.example/?utm_source=a"


async def test_a_click_leads_to_a_host_that_every_client_finds(edge: Edge) -> None:
    edge.index = FakeIndex("https://bücher.example/ü")

    answer = await edge.ask(b"GET", b"/c/" + a_token())

    assert b"\r\nlocation: https://xn--bcher-kva.example/%C3%BC\r\n" in answer.head


async def test_a_destination_cannot_break_out_of_its_header(edge: Edge) -> None:
    edge.index = FakeIndex("https://shop.example/ü%20a\r\nset-cookie: x")

    answer = await edge.ask(b"GET", b"/c/" + a_token())

    assert b"\r\nlocation: https://shop.example/%C3%BC%20a%0D%0Aset-cookie:%20x\r\n" in answer.head


@pytest.mark.parametrize(
    "path", [b"/i/", b"/c/", b"/i/nonsense", b"/c/nonsense", b"/c/https://evil.example/"]
)
async def test_a_link_that_we_did_not_sign_is_rejected(edge: Edge, path: bytes) -> None:
    with pytest.raises(AdloomError) as refused:
        await edge.ask(b"GET", path)

    assert refused.value.code == "TRACKING_TOKEN_INVALID"


async def test_a_link_to_a_banner_without_a_destination_is_not_found(edge: Edge) -> None:
    edge.index = FakeIndex(None)

    with pytest.raises(AdloomError) as refused:
        await edge.ask(b"GET", b"/c/" + a_token())

    assert refused.value.code == "BANNER_NOT_FOUND"


async def test_a_head_request_counts_nothing(edge: Edge) -> None:
    assert await edge.ask(b"HEAD", b"/i/" + a_token()) is PIXEL
    assert (await edge.ask(b"HEAD", b"/c/" + a_token())).head.startswith(b"HTTP/1.1 302")

    assert edge.store.entries == []


# --- while the log is away


async def test_events_and_pixels_are_refused_while_the_log_is_away(edge: Edge) -> None:
    edge.store.is_away = True

    with pytest.raises(UnavailableError):
        await edge.post("impression", a_report())
    with pytest.raises(UnavailableError):
        await edge.ask(b"GET", b"/i/" + a_token())


async def test_a_visitor_is_redirected_and_the_lost_click_counted_while_the_log_is_away(edge: Edge) -> None:
    edge.store.is_away = True

    answer = await edge.ask(b"GET", b"/c/" + a_token())

    assert answer.head.startswith(b"HTTP/1.1 302")
    assert edge.routes.clicks_lost == 1


async def test_a_refused_click_is_redirected_too() -> None:
    async with EventAppender(MemoryStore(), pending_max=0) as appender:
        edge = Edge(MemoryStore(), appender)

        answer = await edge.ask(b"GET", b"/c/" + a_token())

    assert answer.head.startswith(b"HTTP/1.1 302")
    assert edge.routes.clicks_lost == 1


async def test_a_visitor_is_redirected_while_the_log_hangs() -> None:
    class HangingStore:
        async def append(self, entries: Sequence[bytes]) -> None:
            assert entries
            await asyncio.sleep(60)

    async with asyncio.timeout(30), EventAppender(HangingStore(), append_seconds_max=2) as appender:
        edge = Edge(MemoryStore(), appender)

        answer = await edge.ask(b"GET", b"/c/" + a_token())

        assert answer.head.startswith(b"HTTP/1.1 302")
        assert edge.routes.clicks_lost == 0
    assert edge.routes.clicks_lost == 1
