"""Law: the same messages to campaigns come to the same states and the same money on both hosts of actors."""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Protocol

import msgspec
import pytest

from adloom.budgets.addresses import campaign_address
from adloom.budgets.campaign.charges import FLUSH_AFTER
from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.budgets.config.entity_config import EntityConfigurer
from adloom.budgets.kinds import make_campaign_kind, make_kinds
from adloom.budgets.messages import (
    AskBudget,
    CampaignCounts,
    ChargeKind,
    CheckClock,
    Confirm,
    Confirms,
    LeaseUsage,
)
from adloom.budgets.money.store import MoneyWriter
from adloom.core.clock import Clock, ManualClock, SystemClock
from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId, SystemIds
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Pool
from simulation.loop import seeded
from tests.support.actors import Listeners
from tests.support.eventually import eventually
from tests.support.nats import SharedWorker

CAMPAIGNS, ROUNDS, HOLD_SECONDS = 8, 12, 300
SECONDS_MAX = 60.0
BUDGETS = (None, 1, 100_000)  # Paisa a day.
INSERT = """
    INSERT INTO campaigns (public_id, name, status, budget_daily_paisa, bid_type, bid_amount_micros, pacing_strategy)
    VALUES ($1, 'law', 'active', $2, 'cpm', 1000000, 'Accelerated')
"""
STATES = "SELECT key, state, format FROM brain_states WHERE kind = 'campaign'"
MONEY = """
    SELECT campaign_id, kind, request_id, slot, amount_micros FROM money_entries
     ORDER BY campaign_id, kind, request_id, slot
"""

Message = tuple[Address, msgspec.Struct]


class PlayedHost(Protocol):
    """What both hosts can do."""

    def tell(self, address: Address, message: msgspec.Struct) -> bool: ...

    def send_durably(self, address: Address, message: msgspec.Struct) -> "asyncio.Future[None]": ...

    async def ask(self, address: Address, message: msgspec.Struct, *, seconds_max: float) -> Any: ...


@asynccontextmanager
async def run_local(pool: Pool, clock: Clock) -> AsyncGenerator[ActorHost]:
    host = ActorHost(
        make_kinds(),
        PostgresStateStore(pool, MoneyWriter(), clock),
        introduction=make_configurer(pool, clock),
        audience=Listeners(),
        clock=clock,
        chance=seeded(1, "law"),
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(host.run(stop))
        await eventually(lambda: host.is_open, seconds=60)
        yield host
        stop.set()


def make_configurer(pool: Pool, clock: Clock) -> EntityConfigurer:
    return EntityConfigurer(BudgetCatalog(pool), clock, hold_seconds=HOLD_SECONDS)


def make_log(seed: int, campaigns: Sequence[Address], now: datetime) -> list[list[Message]]:
    """Rounds of messages, one to each campaign at a time."""
    chance, ids = random.Random(seed), SystemIds()  # noqa: S311 - seeded, so that runs repeat
    rounds: list[list[Message]] = []
    for number in range(ROUNDS):
        sent: list[Message] = []
        for address in campaigns:
            if chance.random() < 0.2:
                wanted = Micros(chance.randrange(1, 50) * 1_000)
                usage = LeaseUsage(session=1, report=number + 1, lease=0, want=wanted, cost=Micros(1_000))
                sent.append((address, usage))
                continue
            if chance.random() < 0.2:
                counted = CampaignCounts(impressions=chance.randrange(100), clicks=0, until=f"{number + 1}-0")
                sent.append((address, counted))
                continue
            confirms = [
                Confirm(
                    request_id=RequestId(ids.new()),
                    slot=chance.randrange(3),
                    kind=ChargeKind.IMPRESSION,
                    lease=1,
                    second=int(now.timestamp()) - chance.randrange(2 * HOLD_SECONDS),
                    amount=Micros(chance.randrange(20_000)),
                    banner_id=BannerId(ids.new()),
                    placement_id=PlacementId(ids.new()),
                    occurred_at=now,
                )
                for _ in range(chance.randrange(1, 6))
            ]
            sent.append((address, Confirms(tuple(confirms))))
        rounds.append(sent)
    return rounds


async def play(host: PlayedHost, log: Sequence[Sequence[Message]], clock: ManualClock) -> list[Any]:
    """Send rounds one after another, each at one time of the clock; return what campaigns said of their budgets.

    In one process charges wait in the campaign until the clock says that they are stored, so the clock goes on between
    rounds, and campaigns look at it. On NATS a message is stored when it was applied.
    """
    said: list[Any] = []
    for sent in log:
        kept: list[asyncio.Future[None]] = []
        for address, message in sent:
            if isinstance(message, Confirms):
                kept.append(host.send_durably(address, message))
            else:
                assert host.tell(address, message)
        await ask_all(host, sent)  # Then all were applied.
        clock.advance(FLUSH_AFTER)
        for address, _ in sent:
            assert host.tell(address, CheckClock())
        async with asyncio.timeout(SECONDS_MAX):
            await asyncio.gather(*kept)
        said += await ask_all(host, sent)
    return said


async def ask_all(host: PlayedHost, sent: Sequence[Message]) -> list[Any]:
    return await asyncio.gather(
        *(host.ask(address, AskBudget(), seconds_max=SECONDS_MAX) for address, _ in sent)
    )


async def read(pool: Pool) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    kind = make_campaign_kind()
    states = {
        row["key"]: kind.decode(row["state"], format_number=row["format"]) for row in await pool.fetch(STATES)
    }
    return states, [tuple(row) for row in await pool.fetch(MONEY)]


@pytest.mark.parametrize("seed", range(2))
async def test_campaigns_come_to_the_same_states_and_money_on_every_host(
    seed: int, nats_url: str, pool: Pool
) -> None:
    began_at, ids = SystemClock().now(), SystemIds()
    campaigns: list[Address] = []
    for number in range(CAMPAIGNS):
        campaign_id = CampaignId(ids.new())
        await pool.execute(INSERT, campaign_id, BUDGETS[number % len(BUDGETS)])
        campaigns.append(campaign_address(campaign_id, None))
    log = make_log(seed, campaigns, began_at)

    clock = ManualClock(began_at)
    async with run_local(pool, clock) as host:
        said = await play(host, log, clock)
    states, money = await read(pool)
    await pool.execute("TRUNCATE brain_states, money_entries")
    clock = ManualClock(began_at)
    shared = SharedWorker(
        nats_url,
        pool,
        kinds=make_kinds(),
        catalog=make_configurer(pool, clock),
        records=MoneyWriter(),
        clock=clock,
    )
    async with shared.running() as worker:
        said_there = await play(worker.sender, log, clock)
    states_there, money_there = await read(pool)

    assert len(states) == CAMPAIGNS
    assert {one[1] for one in money} == {"charge", "unbilled"}
    assert said_there == said
    assert states_there == states
    assert money_there == money
