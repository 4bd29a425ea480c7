"""Readers of a product under attack: they ask, mostly see what they are offered, and report it until it is taken."""

import asyncio
from http import HTTPStatus
from random import Random

import httpx

from simulation.laws import EventKey, Witness
from tests.chaos.budgets.crowd import Offer, offers_of

PATIENCE_SECONDS = 4.0
PAUSE_SECONDS_MEAN = 0.2
SEES = 0.85  # How many offers are seen; the holds of the others have to come back.
REPORT_AGAIN_SECONDS = 0.2
CONNECTION_REQUESTS_MAX = 20  # Then another process may be met.


class Readers:
    """What all of them were offered, have reported, and were promised."""

    def __init__(self, url: str, slug: str, seed: int) -> None:
        self._address = f"{url}/banners/serve/{slug}"
        self._seed = seed
        self.witness = Witness()
        self.offers: set[tuple[str, int]] = set()
        self.repeated_offers = 0
        self.pause_seconds_mean = PAUSE_SECONDS_MEAN

    async def run(self, *, count: int, ending: asyncio.Event) -> None:
        """Read until told to end; what was seen by then is reported first."""
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                chance = Random(f"{self._seed}:reader:{number}")  # noqa: S311 - no secret is made of it
                group.create_task(self._read(chance, ending))

    async def _read(self, chance: Random, ending: asyncio.Event) -> None:
        while not ending.is_set():
            async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
                for _ in range(chance.randint(1, CONNECTION_REQUESTS_MAX)):
                    for offer in await self._asked(http):
                        if chance.random() < SEES:
                            await self._report(http, offer)
                    if ending.is_set():
                        break
                    await asyncio.sleep(chance.expovariate(1 / self.pause_seconds_mean))

    async def _asked(self, http: httpx.AsyncClient) -> list[Offer]:
        try:
            answer = await http.get(self._address)
        except httpx.TransportError:
            return []
        if answer.status_code != HTTPStatus.OK:
            return []  # It has just started, and has no index yet.
        offers = offers_of(answer.json())
        self.repeated_offers += sum((one.request_id, one.slot) in self.offers for one in offers)
        self.offers.update((one.request_id, one.slot) for one in offers)
        return offers

    async def _report(self, http: httpx.AsyncClient, offer: Offer) -> None:
        key = event_key(offer.request_id, offer.slot)
        self.witness.sent.add(key)
        while key not in self.witness.accepted:
            try:
                answer = await http.get(offer.impression_url)
            except httpx.TransportError:
                await asyncio.sleep(REPORT_AGAIN_SECONDS)
                continue
            if answer.status_code == HTTPStatus.OK:
                self.witness.accepted.add(key)
            else:
                await asyncio.sleep(REPORT_AGAIN_SECONDS)


def event_key(request_id: str, slot: int) -> EventKey:
    """Name the impression of an offer."""
    return EventKey("impression", f"offer:{request_id}:{slot}")
