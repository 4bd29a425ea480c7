"""Readers: they look at pages, their browsers report what they see and click, try again, and repeat themselves."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random  # noqa: TID251 - for its type
from typing import Final

import msgspec

from adloom.core.clock import Clock
from adloom.core.ids import IdSource
from adloom.runtime.http.hot import Answer, HotRequest
from adloom.simulation.faults import Faults
from adloom.simulation.laws import EventKey, Witness
from adloom.simulation.processes import ConnectionLostError

CLICK_RATE: Final = 0.1
TRIES_MAX: Final = 4
PATIENCE_SECONDS: Final = 10.0
WRONG_CLOCK: Final = 0.05

Ask = Callable[[HotRequest], Awaitable[Answer]]


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


_decode_served = msgspec.json.Decoder(Served).decode


class Readers:
    """All readers, and what they know of what was sent and accepted."""

    def __init__(self, ask: Ask, faults: Faults, clock: Clock, ids: IdSource, chance: Random) -> None:
        self.witness = Witness()
        self.requests = 0
        self.unserved = 0
        self._ask = ask
        self._faults = faults
        self._clock = clock
        self._ids = ids
        self._chance = chance

    async def view_page(self, slug: str) -> None:
        """Look at a page: report what is seen, and now and then click."""
        self.requests += 1
        answer = await self._tried(HotRequest(b"GET", b"/banners/serve/" + slug.encode()))
        if answer is None:
            self.unserved += 1
            return
        served = _decode_served(answer.body)
        for slot, offer in enumerate(served.banners):
            await self._report("impression", offer, served, slot)
            if self._chance.random() < CLICK_RATE:
                await asyncio.sleep(self._chance.uniform(0.5, 60))
                await self._report("click", offer, served, slot)

    async def _report(self, kind: str, offer: Offer, served: Served, slot: int) -> None:
        """Report by the address of the offer, or by a post with its token, or without."""
        is_by_address = self._chance.random() < 0.5  # noqa: PLR2004 - a coin
        if is_by_address:
            url = offer.impression_url if kind == "impression" else offer.click_url
            key = EventKey(kind, f"offer:{served.request_id}:{slot}")
            request = HotRequest(b"GET", url.encode())
        else:
            key = EventKey(kind, str(self._ids.new()))
            request = self._post(key, offer, served)
        self.witness.sent.add(key)
        for _ in range(2):
            answer = await self._tried(request)
            # A link that is followed promises nothing: it leads on even if it could not be counted.
            if answer is not None and not (kind == "click" and is_by_address):
                self.witness.accepted.add(key)
            if not self._faults.strikes("report repeated", self._faults.rates.repeated):
                return

    def _post(self, key: EventKey, offer: Offer, served: Served) -> HotRequest:
        report = {
            "correlationId": key.correlation_id,
            "bannerId": offer.id,
            "placementId": served.placement.id,
            "campaignId": offer.campaign_id if self._chance.random() < 0.5 else None,  # noqa: PLR2004 - a coin
            "trackingToken": offer.tracking_token if self._chance.random() < 0.5 else None,  # noqa: PLR2004 - a coin
        }
        if self._chance.random() < WRONG_CLOCK:
            report["occurredAt"] = (
                self._clock.now() - timedelta(days=self._chance.uniform(-3, 3))
            ).isoformat()
        path = f"/banners/events/{key.kind}".encode()
        return HotRequest(b"POST", path, body=msgspec.json.encode(report))

    async def _tried(self, request: HotRequest) -> Answer | None:
        """Ask until it is answered well, a few times."""
        for attempt in range(TRIES_MAX):
            answer = await self._asked(request)
            if answer is not None:
                return answer
            await asyncio.sleep(self._chance.uniform(0, 2.0**attempt))
        return None

    async def _asked(self, request: HotRequest) -> Answer | None:
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
        assert is_good or answer.head.startswith(b"HTTP/1.1 503"), answer.head
        return answer if is_good else None
