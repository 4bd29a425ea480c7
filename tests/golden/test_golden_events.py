"""Every JSON file below `delivery/events` is a case: a request to an event route, its answer, and the events in the log."""

from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from adloom.core.clock import ManualClock
from adloom.core.ids import BannerId
from adloom.events.ingest.api import EventRoutes
from adloom.events.ingest.conversion_api import ConversionRoutes
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.append import EventAppender
from adloom.events.log.event import Conversion, Event
from adloom.runtime.http.networks import Networks
from adloom.serving.request.context import ContextParser
from tests.events.builders import (
    BANNER,
    CAMPAIGN,
    NOW,
    PLACEMENT,
    REQUEST,
    SECRET,
    UNKNOWN_ID,
    FakeIndex,
    a_token,
)
from tests.events.edge import MemoryStore
from tests.support.golden import Expected, Step, compare, filled, matches
from tests.support.hot_server import serving

FOLDER = Path(__file__).parent / "delivery" / "events"
CASES = sorted(FOLDER.rglob("*.json"))
CONTEXTS = ContextParser(trusted=[ip_network("127.0.0.1")])
KEPT = {
    "banner": str(BANNER),
    "placement": str(PLACEMENT),
    "campaign": str(CAMPAIGN),
    "nobody": str(UNKNOWN_ID),
    "request": str(REQUEST),
    "token": a_token(slot=2).decode(),
    "other": a_token(banner=BannerId(UNKNOWN_ID)).decode(),
    "expired": a_token(issued_at=NOW - timedelta(minutes=31)).decode(),
}
# A body that is too large is over HTTP too, in tests/events/test_over_http.py.
CODES = {
    "VALIDATION_FAILED": 400,
    "TRACKING_TOKEN_INVALID": 403,
    "BANNER_NOT_FOUND": 404,
    "PLACEMENT_NOT_FOUND": 404,
    "CAMPAIGN_NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "UNAVAILABLE": 503,
}


class EventCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request, an answer, and the relevant fields of the events in the log."""

    request: Step
    expect: Expected
    ledger: list[dict[str, Any]] = []
    ledger_is_away: bool = False


def read_case(path: Path) -> EventCase:
    return msgspec.json.decode(path.read_bytes(), type=EventCase)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())
async def test_golden_events(path: Path) -> None:
    case, store = read_case(path), MemoryStore()
    store.is_away = case.ledger_is_away
    detector = TrafficDetector(
        CONTEXTS.is_crawler,
        trusted=[ip_network("127.0.0.1")],
        data_centers=Networks([ip_network("198.51.100.0/24")]),
        unpaid=MinuteCounts(3),
        unbound=MinuteCounts(3),
    )
    async with EventAppender(store) as appender:
        routes = EventRoutes(
            FakeIndex,
            appender,
            TokenKeys(SECRET),
            ManualClock(NOW),
            detector=detector,
            read_request_info=CONTEXTS.read_request_info,
        )
        conversions = ConversionRoutes(appender, TokenKeys(SECRET), ManualClock(NOW))
        async with serving([*routes.list_routes(), *conversions.list_routes()]) as client:
            answer = await asked(case.request, client)

    assert answer.status_code == case.expect.status, answer.text
    for name, value in case.expect.headers.items():
        assert matches(answer.headers.get(name), filled(value, KEPT)), f"{name}: {answer.headers.get(name)!r}"
    if case.expect.body is not msgspec.UNSET:
        compare(answer.json(), filled(case.expect.body, KEPT), "body")
    assert len(store.reports) == len(case.ledger)
    for place, (event, expected) in enumerate(zip(store.reports, case.ledger, strict=True)):
        compare(fields_of(event), filled(expected, KEPT), f"ledger.{place}")


def test_every_code_of_the_event_routes_has_a_case_with_its_status() -> None:
    cases = [read_case(path) for path in CASES]
    problems = [case.expect for case in cases if case.expect.body is not msgspec.UNSET]

    assert CODES.items() <= {(expect.body.get("errorCode"), expect.status) for expect in problems}


async def asked(step: Step, client: httpx.AsyncClient) -> httpx.Response:
    method, _, path = filled(step.do, KEPT).partition(" ")
    content = step.raw
    if step.body is not msgspec.UNSET:
        content = msgspec.json.encode(filled(step.body, KEPT)).decode()
    headers = {"user-agent": "", **filled(step.headers, KEPT)}
    return await client.request(method, path, headers=headers, content=content)


def fields_of(event: Event | Conversion) -> dict[str, Any]:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    return {"kind": type(event).__name__, **msgspec.to_builtins(fields)}
