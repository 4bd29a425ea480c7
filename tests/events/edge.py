"""The event routes over a log in memory, asked as the protocol asks them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.events.ingest.accept import UNKNOWN_REQUEST, RequestInfo
from adloom.events.ingest.api import EventRoutes
from adloom.events.ingest.ivt.detector import Detector
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.append import PENDING_MAX, EventAppender
from adloom.events.log.event import Click, Conversion, Event, Impression, decode_event
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoutes
from tests.events.builders import BANNER, CAMPAIGN, NOW, PLACEMENT, SECRET, FakeIndex

Headers = dict[str, str]


class MemoryStore:
    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.is_away = False

    @property
    def events(self) -> list[Event]:
        return [one for one in self.reports if isinstance(one, Impression | Click)]

    @property
    def reports(self) -> list[Event | Conversion]:
        happenings = [decode_event(entry) for entry in self.entries]
        return [one for one in happenings if isinstance(one, Impression | Click | Conversion)]

    async def append(self, entries: Sequence[bytes]) -> None:
        await asyncio.sleep(0)
        if self.is_away:
            raise UnavailableError("away")
        self.entries.extend(entries)


class Edge:
    def __init__(
        self,
        store: MemoryStore,
        appender: EventAppender,
        *,
        detector: Detector | None = None,
        read_request_info: Callable[[FastRequest], RequestInfo] = lambda _: UNKNOWN_REQUEST,
        **options: Any,
    ) -> None:
        self.store = store
        self.clock = ManualClock(NOW)
        self.index = FakeIndex()
        self.routes = EventRoutes(
            lambda: self.index,
            appender,
            TokenKeys(SECRET),
            self.clock,
            detector=detector,
            read_request_info=read_request_info,
            **options,
        )
        self._table = FastRoutes(self.routes.list_routes())

    async def ask(
        self,
        method: bytes,
        path: bytes,
        body: bytes = b"",
        *,
        headers: Headers | None = None,
        client: str | None = None,
    ) -> FastAnswer:
        route = self._table.find(method, path)
        assert route is not None
        pairs = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        answer = route.handler(FastRequest(method, path, headers=pairs, body=body, client=client))
        assert answer is not None
        return answer if isinstance(answer, FastAnswer) else await answer

    async def post(
        self, kind: str, body: Any, *, headers: Headers | None = None, client: str | None = None
    ) -> FastAnswer:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        path = f"/banners/events/{kind}".encode()
        return await self.ask(b"POST", path, data, headers=headers, client=client)


@asynccontextmanager
async def an_edge(*, pending_max: int = PENDING_MAX, **parts: Any) -> AsyncGenerator[Edge]:
    store = MemoryStore()
    async with EventAppender(store, pending_max=pending_max) as appender:
        yield Edge(store, appender, **parts)


def a_report(**fields: Any) -> dict[str, Any]:
    return {
        "correlationId": "one",
        "bannerId": BANNER,
        "placementId": PLACEMENT,
        "campaignId": CAMPAIGN,
        **fields,
    }
