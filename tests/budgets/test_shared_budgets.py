"""Budgets that workers share by NATS: leases, charges, allotments and changes of the catalog reach their campaign."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from adloom.budgets.addresses import make_advertiser_address
from adloom.budgets.advertiser.state import AdvertiserStatus
from adloom.budgets.kinds import make_kinds
from adloom.budgets.messages import AskBudget, ChargeKind, Confirm, Confirms, SpendUpdate
from adloom.budgets.transport.wire import INBOX_CHANNEL
from adloom.budgets.worker import SharedBudgetActors, WorkerIdentity, share_budget_actors
from adloom.core.clock import SystemClock
from adloom.core.ids import BannerId, PlacementId, RequestId, SystemIds
from adloom.core.money import Micros
from adloom.resource.changes import Catalog, IndexedNoun
from adloom.runtime.actors.nats.link import NatsLink
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.budgets.worker_stage import (
    ADVERTISER,
    CAMPAIGN,
    UNIT,
    Process,
    address_of,
    insert_advertiser,
    insert_campaign,
    wait_for_subscriber,
)
from tests.support.eventually import becomes, eventually
from tests.support.rows import an_id

ADDRESS = address_of(CAMPAIGN, ADVERTISER)


class SharedStage:
    """A worker with all roles."""

    def __init__(self, url: str, pool: Pool, valkey: Valkey) -> None:
        self.valkey = valkey
        self.link = NatsLink(url, make_kinds(), SystemIds(), name="worker")
        self.actors: SharedBudgetActors = share_budget_actors(
            self.link.sender,
            pool,
            valkey,
            SystemClock(),
            worker=WorkerIdentity("worker", "1"),
            hold_seconds=300,
            shard_pool=pool,
        )
        self.host = self.link.add_host([self.actors.family], pool, SystemClock())

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["SharedStage"]:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for run in (self.link.run, self.actors.leader.run, self.actors.decider.run):
                group.create_task(run(stop))
            await eventually(lambda: len(self.host.pulls.list_held()) == 100, seconds=30)
            await wait_for_subscriber(self.valkey, INBOX_CHANNEL, seconds=20)
            try:
                yield self
            finally:
                stop.set()

    async def ask_campaign(self) -> SpendUpdate:
        return await self.link.sender.ask(ADDRESS, AskBudget(), seconds_max=10)

    async def ask_advertiser(self) -> AdvertiserStatus:
        return await self.link.sender.ask(make_advertiser_address(ADVERTISER), AskBudget(), seconds_max=10)


def a_confirm(number: int, lease: int) -> Confirm:
    now = datetime.now(UTC)
    return Confirm(
        request_id=RequestId(an_id(number)),
        slot=0,
        kind=ChargeKind.IMPRESSION,
        lease=lease,
        second=int(now.timestamp()),
        amount=UNIT,
        banner_id=BannerId(an_id(7)),
        placement_id=PlacementId(an_id(8)),
        occurred_at=now,
    )


async def test_a_shared_campaign_leases_charges_and_reports(
    nats_url: str, pool: Pool, valkey: Valkey
) -> None:
    await insert_advertiser(pool, budget=10_000)
    await insert_campaign(pool, advertiser=ADVERTISER)
    async with SharedStage(nats_url, pool, valkey).running() as stage, Process(valkey).listening() as process:
        await process.send_heartbeat()

        # The first answer may come before the advertiser has allotted something: the process asks again.
        async def is_leased() -> bool:
            return (await process.ask_for_lease(ADDRESS, want=Micros(3 * UNIT))).granted == 3 * UNIT

        await becomes(is_leased, seconds=30)
        lease = process.answers[-1].lease
        confirms = Confirms(tuple(a_confirm(number, lease) for number in (1, 2)))
        await stage.link.sender.send_durably(ADDRESS, confirms)

        assert (await stage.ask_campaign()).spent_today == 2 * UNIT
        assert (
            await pool.fetchval("SELECT sum(amount_micros) FROM money_entries WHERE kind = 'charge'")
            == 2 * UNIT
        )

        async def is_reported() -> bool:
            return (await stage.ask_advertiser()).spent == 2 * UNIT

        await becomes(is_reported, seconds=30)
        assert stage.host.counts.fenced == 0


async def test_a_change_of_the_catalog_reaches_a_shared_campaign(
    nats_url: str, pool: Pool, valkey: Valkey
) -> None:
    await insert_advertiser(pool)
    await insert_campaign(pool, advertiser=ADVERTISER, daily=10_000)
    async with SharedStage(nats_url, pool, valkey).running() as stage:
        before = (await stage.ask_campaign()).daily_budget
        async with Catalog(pool, valkey).write() as write:
            key = await write.connection.fetchval(
                "UPDATE campaigns SET budget_daily_paisa = 20000 RETURNING id"
            )
            write.touch(IndexedNoun.CAMPAIGN, key)

        async def is_changed() -> bool:
            return (await stage.ask_campaign()).daily_budget == 2 * (before or 0)

        await becomes(is_changed, seconds=30)
