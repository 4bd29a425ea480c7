"""Visitors: they look at pages; their browsers report impressions and clicks, retry, and repeat themselves."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, timedelta
from random import Random  # noqa: TID251 - for its type
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.clock import Clock
from adloom.core.ids import IdSource
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from simulation.faults import Faults
from simulation.laws import EventKey, Witness
from simulation.processes import ConnectionLostError

CLICK_RATE: Final = 0.15
CLICKS_BEFORE: Final = 0.3  # How often a click is reported before its impression.
TWICE: Final = 0.1  # How often an offer is reported under a second name, as two programs on one page do.
LATE: Final = 0.05
LATE_SECONDS_MAX: Final = 90.0
IN_A_BATCH: Final = 0.2
TRIES_MAX: Final = 4
PATIENCE_SECONDS: Final = 10.0
WRONG_CLOCK: Final = 0.05
RIGHT_CLOCK: Final = 0.3
KNOWN: Final = 0.3  # How often an event names its user, so that it is in no group of the log's.
ZONES: Final = tuple(map(ZoneInfo, ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC")))

Ask = Callable[[FastRequest], Awaitable[FastAnswer]]


class Offer(msgspec.Struct, frozen=True, rename="camel"):
    """A banner as a page gets it."""

    id: str
    campaign_id: str
    tracking_token: str
    impression_url: str
    click_url: str


class ServedPlacement(msgspec.Struct, frozen=True):
    """A placement as a page gets it."""

    id: str


class Served(msgspec.Struct, frozen=True, rename="camel"):
    """What a page gets."""

    placement: ServedPlacement
    banners: list[Offer]
    request_id: str


class Report(msgspec.Struct, frozen=True):
    """A request that reports events; a followed link promises nothing, it only redirects."""

    request: FastRequest
    keys: Sequence[EventKey]
    is_promise: bool = True


_decode_served = msgspec.json.Decoder(Served).decode


class Visitors:
    """All visitors, and what they know of what was sent and accepted."""

    def __init__(self, ask: Ask, faults: Faults, clock: Clock, ids: IdSource, chance: Random) -> None:
        self.witness = Witness()
        self.requests = 0
        self.unserved = 0
        self.refused = 0
        self._ask = ask
        self._faults = faults
        self._clock = clock
        self._ids = ids
        self._chance = chance
        self._are_clocks_right = faults.rates.clock_seconds_between == float("inf")

    async def view_page(self, slug: str) -> None:
        """Report what is seen, and click now and then; not always in this order."""
        self.requests += 1
        answer = await self._try_request(FastRequest(b"GET", b"/banners/serve/" + slug.encode()))
        if answer is None:
            self.unserved += 1
            return
        served = _decode_served(answer.body)
        if self._happens(IN_A_BATCH):
            await self._send(self._make_batch(served))
            return
        for slot, offer in enumerate(served.banners):
            reports = [self._make_report("impression", offer, served, slot)]
            if self._happens(CLICK_RATE):
                reports.insert(
                    0 if self._happens(CLICKS_BEFORE) else 1, self._make_report("click", offer, served, slot)
                )
            if self._happens(TWICE):
                reports.append(self._make_report(self._draw_kind(), offer, served, slot))
            for report in reports:
                await asyncio.sleep(self._chance.uniform(0, LATE_SECONDS_MAX if self._happens(LATE) else 1))
                await self._send(report)

    def _happens(self, rate: float) -> bool:
        return self._chance.random() < rate

    def _draw_kind(self) -> str:
        return self._chance.choice(["impression", "click"])

    def _make_report(self, kind: str, offer: Offer, served: Served, slot: int) -> Report:
        """Report by the offer's address, or by a post with its token, or without."""
        if self._happens(0.5):
            url = offer.impression_url if kind == "impression" else offer.click_url
            key = EventKey(kind, f"offer:{served.request_id}:{slot}")
            return Report(FastRequest(b"GET", url.encode()), [key], is_promise=kind == "impression")
        key, event = self._make_event(kind, offer, served, slot)
        path = f"/banners/events/{kind}".encode()
        return Report(FastRequest(b"POST", path, body=msgspec.json.encode(event)), [key])

    def _make_batch(self, served: Served) -> Report:
        """Report everything on a page together, some of it twice."""
        events = [
            self._make_event(kind, offer, served, slot)
            for slot, offer in enumerate(served.banners)
            for kind in ("impression", self._draw_kind())
        ]
        events += self._chance.choices(events, k=2)
        body = {"events": [{"type": key.kind, **event} for key, event in events]}
        request = FastRequest(b"POST", b"/banners/events/batch", body=msgspec.json.encode(body))
        return Report(request, [key for key, _ in events])

    def _make_event(
        self, kind: str, offer: Offer, served: Served, slot: int
    ) -> tuple[EventKey, dict[str, Any]]:
        name, has_token = str(self._ids.make()), self._happens(0.5)
        # With a token the event has the name of its offer, whatever the browser says.
        key = EventKey(kind, f"offer:{served.request_id}:{slot}" if has_token else name)
        event = {
            "correlationId": name,
            "bannerId": offer.id,
            "placementId": served.placement.id,
            "campaignId": offer.campaign_id if self._happens(0.5) else None,
            "trackingToken": offer.tracking_token if has_token else None,
            "userId": str(self._ids.make()) if self._happens(KNOWN) else None,
        }
        now = self._clock.now()
        if self._happens(WRONG_CLOCK):
            event["occurredAt"] = (now - timedelta(days=self._chance.uniform(-3, 3))).isoformat()
        elif self._happens(RIGHT_CLOCK):
            moment = now - timedelta(seconds=self._chance.uniform(0, LATE_SECONDS_MAX))
            event["occurredAt"] = moment.astimezone(self._chance.choice(ZONES)).isoformat()
            if self._are_clocks_right and not has_token:
                self.witness.days[key] = moment.astimezone(UTC).date()
        return key, event

    async def _send(self, report: Report) -> None:
        self.witness.sent.update(report.keys)
        for _ in range(2):
            answer = await self._try_request(report.request)
            if answer is not None and report.is_promise:
                assert answer.body.endswith((b"true}", b'"rejected":[]}', b";")), answer
                self.witness.accepted.update(report.keys)
            if not self._faults.strikes("report repeated", self._faults.rates.repeated):
                return

    async def _try_request(self, request: FastRequest) -> FastAnswer | None:
        """Retry a few times until the answer is good."""
        for attempt in range(TRIES_MAX):
            answer = await self._request(request)
            if answer is not None:
                return answer
            await asyncio.sleep(self._chance.uniform(0, 2.0**attempt))
        return None

    async def _request(self, request: FastRequest) -> FastAnswer | None:
        faults = self._faults
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await faults.travel()
                if faults.strikes("request lost", faults.rates.request_lost):
                    return None
                answer = await self._ask(request)
                await faults.travel()
        except (ConnectionLostError, TimeoutError):
            return None
        if faults.strikes("response lost", faults.rates.response_lost):
            return None
        is_good = answer.head.startswith((b"HTTP/1.1 2", b"HTTP/1.1 3"))
        assert is_good or answer.head.startswith(b"HTTP/1.1 503"), answer
        self.refused += not is_good
        return answer if is_good else None
