"""Clients that report to a product under attack, and remember what they sent and what they were promised."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx
import msgspec

from simulation.laws import EventKey, Witness

PATIENCE_SECONDS = 4.0
PAUSE_SECONDS_MEAN = 0.02
TRIES_MAX = 4
IMPATIENT = 0.03  # How often somebody hangs up without waiting for the answer.
CONNECTION_REQUESTS_MAX = 60
SENT_KEPT_MAX = 500
USERS = [f"01890000-0000-7000-8000-00000000000{number}" for number in range(5)]
WELL = {"serve": {200}, "events": {202}, "pixel": {200}, "link": {302}}


class Ads(msgspec.Struct, frozen=True):
    """What can be asked for and reported: slugs, and the ids of their ads as events name them."""

    slugs: list[str]
    ids: list[dict[str, str]]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A request that tells of events; a link that is followed promises nothing, it only leads on."""

    route: str
    method: str = "POST"
    address: str
    body: Any = None
    keys: tuple[EventKey, ...]

    @property
    def is_promise(self) -> bool:
        return self.route != "link"


class Traffic:
    """What all clients have sent and learned."""

    def __init__(self, ads: Ads, url: str, seed: int) -> None:
        self.ads = ads
        self.url = url
        self.seed = seed
        self.witness = Witness()
        self.answers: Counter[str] = Counter()
        self.complaints: list[str] = []

    async def run(self, *, clients: int, ending: asyncio.Event) -> None:
        """Send from several clients at once, until told to end."""
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(Client(self, number).run(ending))


class Client:
    """One of them: it views, reports late and out of order, repeats itself, hangs up and comes back."""

    def __init__(self, traffic: Traffic, number: int) -> None:
        self._traffic = traffic
        self._number = number
        self._chance = Random(f"{traffic.seed}:client:{number}")  # noqa: S311 - no secret is made of it
        self._later: list[Report] = []
        self._sent: list[Report] = []
        self._named = 0

    async def run(self, ending: asyncio.Event) -> None:
        while not ending.is_set():
            async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
                for _ in range(self._chance.randint(1, CONNECTION_REQUESTS_MAX)):
                    if ending.is_set():
                        break
                    await self._act(http)
                    await asyncio.sleep(self._chance.expovariate(1 / PAUSE_SECONDS_MEAN))

    async def _act(self, http: httpx.AsyncClient) -> None:
        match self._chance.randrange(10):
            case 0 | 1:
                await self._view(http)
            case 2:
                self._later += [self._a_report() for _ in range(3)]
            case 3 if self._sent:
                await self._send(http, self._chance.choice(self._sent))
            case 4 | 5:
                await self._send(http, self._a_batch())
            case 6 | 7 if self._later:
                await self._send(http, self._later.pop(self._chance.randrange(len(self._later))))
            case _:
                await self._send(http, self._a_report())

    async def _view(self, http: httpx.AsyncClient) -> None:
        """Ask for a page; what is seen and clicked is reported later, in any order."""
        slug = self._chance.choice(self._traffic.ads.slugs)
        answer = await self._ask(http, "serve", "GET", f"{self._traffic.url}/banners/serve/{slug}")
        if answer is None:
            return
        served = answer.json()
        for slot, banner in enumerate(served["banners"]):
            key = f"offer:{served['requestId']}:{slot}"
            pixel = Report(
                route="pixel",
                method="GET",
                address=banner["impressionUrl"],
                keys=(EventKey("impression", key),),
            )
            link = Report(
                route="link", method="GET", address=banner["clickUrl"], keys=(EventKey("click", key),)
            )
            ids = {"bannerId": banner["id"], "placementId": served["placement"]["id"]}
            ids["userId"] = self._chance.choice(USERS)  # Caps are counted of those who have a name.
            posts = [
                self._a_report(kind, key, **ids, trackingToken=banner["trackingToken"])
                for kind in ("impression", "click")
            ]
            self._later += self._chance.sample([pixel, link, *posts], self._chance.randint(0, 3))

    def _a_report(self, kind: str = "", key: str | None = None, **fields: str) -> Report:
        """Report an event by a post; one with a token has the name of its offer."""
        event = self._an_event(kind or self._a_kind(), **fields)
        kind = event.pop("type")
        return Report(
            route="events",
            address=f"{self._traffic.url}/banners/events/{kind}",
            body=event,
            keys=(EventKey(kind, key or event["correlationId"]),),
        )

    def _a_batch(self) -> Report:
        events = [self._an_event(self._a_kind()) for _ in range(self._chance.randint(1, 20))]
        return Report(
            route="events",
            address=f"{self._traffic.url}/banners/events/batch",
            body={"events": events},
            keys=tuple(EventKey(event["type"], event["correlationId"]) for event in events),
        )

    def _an_event(self, kind: str, **fields: str) -> dict[str, Any]:
        chance = self._chance
        self._named += 1
        event = {
            "type": kind,
            "correlationId": f"{self._traffic.seed}-{self._number}-{self._named}",
            **fields,
        }
        if not fields:
            event |= chance.choice(self._traffic.ads.ids)
        if chance.random() < 0.2:
            # From 20 hours ago to a minute ahead: yesterday gets its events too.
            seconds = chance.uniform(-72_000, 60)
            event["occurredAt"] = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
        if chance.random() < 0.3:
            event["userId"] = chance.choice(USERS)
        if chance.random() < 0.3:
            event["countryCode"] = chance.choice(["DE", "fr"])
        return event

    def _a_kind(self) -> str:
        return "click" if self._chance.random() < 0.3 else "impression"

    async def _send(self, http: httpx.AsyncClient, report: Report) -> None:
        """Send a report until it is taken, a few times: it may be lost, refused, or taken and unanswered."""
        witness = self._traffic.witness
        witness.sent.update(report.keys)
        self._sent = [*self._sent[-SENT_KEPT_MAX:], report]
        for attempt in range(self._chance.randint(1, TRIES_MAX)):
            answer = await self._ask(http, report.route, report.method, report.address, report.body)
            if answer is not None:
                if report.is_promise:
                    witness.accepted.update(report.keys)
                    self._check_whole(report, answer)
                return
            await asyncio.sleep(self._chance.uniform(0, 0.2 * 2**attempt))

    def _check_whole(self, report: Report, answer: httpx.Response) -> None:
        if report.body and "events" in report.body:
            said = answer.json()
            if said["accepted"] != len(report.keys) or said["rejected"]:
                self._traffic.complaints.append(f"a batch of {len(report.keys)} was answered {said}")

    async def _ask(
        self, http: httpx.AsyncClient, route: str, method: str, address: str, body: Any = None
    ) -> httpx.Response | None:
        traffic = self._traffic
        is_patient = self._chance.random() >= IMPATIENT
        try:
            async with asyncio.timeout(PATIENCE_SECONDS if is_patient else self._chance.uniform(0, 0.005)):
                answer = await http.request(method, address, json=body)
        except (httpx.TransportError, TimeoutError) as error:
            traffic.answers[f"{route} {type(error).__name__ if is_patient else 'hung up'}"] += 1
            return None
        traffic.answers[f"{route} {answer.status_code}"] += 1
        if answer.status_code in WELL[route]:
            return answer
        if answer.status_code != 503 or "retry-after" not in answer.headers:
            traffic.complaints.append(f"{method} {address} was answered {answer.status_code}: {answer.text}")
        return None
