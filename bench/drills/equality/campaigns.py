"""The same messages to campaigns on both hosts: charges, leases and counts, with budgets that run out."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from adloom.budgets.addresses import make_campaign_address
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
from adloom.runtime.postgres import Pool
from bench.drills.equality.hosts import (
    Message,
    PlayedHost,
    PlayedKinds,
    ask_all,
    read_states,
    run_local,
    run_shared,
)
from bench.drills.result import Figures, require
from simulation.loop import make_random

CAMPAIGNS, ROUNDS, HOLD_SECONDS = 8, 12, 300
SECONDS_MAX: Final = 60.0
SOMETIMES: Final = 0.2
BUDGETS: Final = (None, 1, 100_000)  # Paisa a day.
INSERT: Final = """
    INSERT INTO campaigns (public_id, name, status, budget_daily_paisa, bid_type, bid_amount_micros, pacing_strategy)
    VALUES ($1, 'drill', 'active', $2, 'cpm', 1000000, 'Accelerated')
"""
MONEY: Final = """
    SELECT campaign_id, kind, request_id, slot, amount_micros FROM money_entries
     ORDER BY campaign_id, kind, request_id, slot
"""
CLEAR: Final = "TRUNCATE brain_states, money_entries, spend_days"


async def compare_campaigns(nats_url: str, pool: Pool, *, seed: int) -> Figures:
    """Play a log on both hosts; states, money and answers must be equal."""
    began_at, ids = SystemClock().now(), SystemIds()
    campaigns: list[Address] = []
    for number in range(CAMPAIGNS):
        campaign_id = CampaignId(ids.make())
        await pool.execute(INSERT, campaign_id, BUDGETS[number % len(BUDGETS)])
        campaigns.append(make_campaign_address(campaign_id, None))
    log = _make_log(seed, campaigns, began_at)

    await pool.execute(CLEAR)
    clock = ManualClock(began_at)
    async with run_local(pool, make_played(pool, clock), clock) as host:
        said = await _play(host, log, clock)
    states, money = await _read(pool, campaigns)
    await pool.execute(CLEAR)
    clock = ManualClock(began_at)
    async with run_shared(nats_url, pool, make_played(pool, clock), clock) as host:
        said_there = await _play(host, log, clock)
    states_there, money_there = await _read(pool, campaigns)
    await pool.execute(CLEAR)

    require(is_so=len(states) == CAMPAIGNS, what=f"{len(states)} of {CAMPAIGNS} campaigns have a state")
    require(is_so={one[1] for one in money} == {"charge", "unbilled"}, what="not all kinds of money came up")
    require(is_so=said_there == said, what="campaigns answer otherwise on NATS")
    require(is_so=states_there == states, what="campaigns have other states on NATS")
    require(is_so=money_there == money, what="campaigns have other charges on NATS")
    return {
        "messages to campaigns": sum(map(len, log)),
        "equal campaigns": len(states),
        "equal charges": len(money),
    }


def make_played(pool: Pool, clock: Clock) -> PlayedKinds:
    configurer = EntityConfigurer(BudgetCatalog(pool), clock, hold_seconds=HOLD_SECONDS)
    return PlayedKinds(make_kinds(), MoneyWriter(clock), configurer)


def _make_log(seed: int, campaigns: Sequence[Address], now: datetime) -> list[list[Message]]:
    """Make rounds of messages, one to each campaign at a time."""
    chance, ids = make_random(seed, "equal campaigns"), SystemIds()
    rounds: list[list[Message]] = []
    for number in range(ROUNDS):
        sent: list[Message] = []
        for address in campaigns:
            if chance.random() < SOMETIMES:
                wanted = Micros(chance.randrange(1, 50) * 1_000)
                usage = LeaseUsage(session=1, report=number + 1, lease=0, want=wanted, cost=Micros(1_000))
                sent.append((address, usage))
                continue
            if chance.random() < SOMETIMES:
                counted = CampaignCounts(impressions=chance.randrange(100), clicks=0, until=f"{number + 1}-0")
                sent.append((address, counted))
                continue
            confirms = [
                Confirm(
                    request_id=RequestId(ids.make()),
                    slot=chance.randrange(3),
                    kind=ChargeKind.IMPRESSION,
                    lease=1,
                    second=int(now.timestamp()) - chance.randrange(2 * HOLD_SECONDS),
                    amount=Micros(chance.randrange(20_000)),
                    banner_id=BannerId(ids.make()),
                    placement_id=PlacementId(ids.make()),
                    occurred_at=now,
                )
                for _ in range(chance.randrange(1, 6))
            ]
            sent.append((address, Confirms(tuple(confirms))))
        rounds.append(sent)
    return rounds


async def _play(host: PlayedHost, log: Sequence[Sequence[Message]], clock: ManualClock) -> list[Any]:
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
                require(is_so=host.tell(address, message), what="a message was refused")
        questions = [(address, AskBudget()) for address, _ in sent]
        await ask_all(host, questions)  # Then all were applied.
        clock.advance(FLUSH_AFTER)
        for address, _ in sent:
            host.tell(address, CheckClock())
        async with asyncio.timeout(SECONDS_MAX):
            for one in kept:
                await one
        said += await ask_all(host, questions)
    return said


async def _read(pool: Pool, campaigns: Sequence[Address]) -> tuple[dict[Address, Any], list[tuple[Any, ...]]]:
    states = await read_states(pool, [make_campaign_kind()])
    played = {address: state for address, state in states.items() if address in campaigns}
    return played, [tuple(row) for row in await pool.fetch(MONEY)]
