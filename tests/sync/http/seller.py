"""A seller as an API client, with one or more entities of each kind."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from uuid import UUID

import httpx

from adloom.runtime.jobs.worker import Handler, JobWorker
from adloom.sync.jobs import CONCURRENCY, QUEUE, SYNC_STATS
from adloom.sync.processor import choose_backoff
from tests.support.builders import Json
from tests.support.control import Client

API = "/api/ads-manager"
SEAL = "a-secret-that-seals-what-others-must-not-read"
DAY = "2026-02-19"
WAITS_MAX = 1_000

_numbers = itertools.count(1)


class Seller:
    """Acts for one advertiser account."""

    def __init__(self, client: Client, account_id: UUID) -> None:
        self.client = client
        self.id = account_id
        self.made: dict[str, Json] = {}

    async def make(self, noun: str, **fields: object) -> Json:
        name = f"{noun} {next(_numbers)}"
        return await self.client.made(f"{API}/{noun}", {"name": name, **self.parents(noun), **fields})

    def parents(self, noun: str) -> Json:
        """Return the parents and other required fields of a new entity."""
        match noun:
            case "campaigns":
                return {
                    "adAccountId": self.id_of("accounts"),
                    "sellpageId": self.id_of("sellpages"),
                    "budget": 2500,
                }
            case "adsets":
                return {"campaignId": self.id_of("campaigns")}
            case "ads":
                return {"adsetId": self.id_of("adsets")}
            case _:
                return {}

    def id_of(self, noun: str) -> str:
        return self.made[noun]["id"]

    def path(self, noun: str) -> str:
        return f"{API}/{noun}/{self.id_of(noun)}"

    async def report(self, what: str, **query: object) -> Json:
        answer = await self.asked(what, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def asked(self, what: str, **query: object) -> httpx.Response:
        params = {"dateFrom": DAY, "dateTo": DAY, **query}
        return await self.client.get(f"{API}/reports/{what}", params={k: str(v) for k, v in params.items()})

    async def sync(self, **body: object) -> Json:
        answer = await self.client.post(f"{API}/sync", json=body)
        assert answer.status_code == 202, answer.text
        return answer.json()

    async def jobs(self, state: str) -> dict[str, Json]:
        answer = await self.client.get(f"{API}/jobs", params={"state": state, "pageSize": "100"})
        assert answer.status_code == 200, answer.text
        return {one["id"]: one for one in answer.json()["items"]}

    async def wait_for(self, job_ids: Iterable[str], state: str = "completed") -> None:
        for _ in range(WAITS_MAX):
            if set(job_ids) <= (await self.jobs(state)).keys():
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"not {state}: {sorted(job_ids)}")

    async def synced(self, **body: object) -> None:
        """Sync, and wait until it has ended."""
        await self.wait_for((await self.sync(**body))["jobIds"])


async def a_seller(client: Client, account_id: UUID, **account: object) -> Seller:
    """Make one entity of each kind."""
    seller = Seller(client, account_id)
    for noun in ("accounts", "sellpages", "campaigns", "adsets", "ads"):
        seller.made[noun] = await seller.make(noun, **(account if noun == "accounts" else {}))
    return seller


@asynccontextmanager
async def running_worker(redis_url: str, handle: Handler) -> AsyncGenerator[None]:
    """Run the jobs of stats sync as a worker does."""
    jobs = JobWorker(QUEUE, redis_url, {SYNC_STATS: handle}, concurrency=CONCURRENCY, backoff=choose_backoff)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(jobs.run(stop))
        try:
            yield
        finally:
            stop.set()
