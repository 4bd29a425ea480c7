"""The load of a drill: charges of campaigns and questions to them, and what must be true at the end."""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Final

import msgspec

from adloom.budgets.addresses import CAMPAIGN, parse_campaign_key
from adloom.budgets.kinds import make_campaign_kind
from adloom.budgets.messages import AskBudget, ChargeKind, Confirm, Confirms
from adloom.budgets.money.comparison import reconcile_settled
from adloom.core.clock import SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import BannerId, PlacementId, RequestId, SystemIds
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address, find_shard
from bench.drills.cluster import Cluster
from bench.drills.equality.hosts import read_states
from simulation.loop import make_random

CONFIRMS: Final = 5  # In a message.
MESSAGES: Final = 40  # At once.
PRICE: Final = Micros(1_000)
ANSWER_SECONDS_MAX: Final = 20.0
PAUSE_SECONDS: Final = 0.05
CHARGED: Final = """
    SELECT request_id FROM money_entries WHERE request_id = ANY ($1::uuid[]) AND kind IN ('charge', 'unbilled')
"""
SUMS: Final = """
    SELECT campaign_id, count(*) AS charges, sum(amount_micros)::bigint AS micros
      FROM money_entries WHERE kind = 'charge' GROUP BY 1
"""


class ChargeCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent and what is stored; a drill is lost where they differ."""

    sent: int
    charged: int
    lost: int
    twice: int
    wrong_states: int
    over_budget: int
    days: int  # With charges,
    wrong_days: int  # and those whose bill is not what campaigns say, as `adloom doctor --money` finds.

    @property
    def is_right(self) -> bool:
        return self.days > 0 and not (
            self.lost or self.twice or self.wrong_states or self.over_budget or self.wrong_days
        )


class Load:
    """Charges campaigns until it is stopped; what is not known to be kept is sent again, as the worker does."""

    def __init__(self, cluster: Cluster, *, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._cluster = cluster
        self._pause_seconds = pause_seconds
        self._chance = make_random(1, "drill")
        self._sent: Counter[str] = Counter()
        self._sent_micros: Counter[str] = Counter()
        self._stop = asyncio.Event()
        self.failures = 0

    async def run(self) -> None:
        while not self._stop.is_set():
            batch = [self._make(self._chance.choice(self._cluster.campaigns)) for _ in range(MESSAGES)]
            while batch:
                batch = await self._send(batch)
            await asyncio.sleep(self._pause_seconds)

    def stop(self) -> None:
        self._stop.set()

    async def _send(
        self, batch: list[tuple[Address, tuple[Confirm, ...]]]
    ) -> list[tuple[Address, tuple[Confirm, ...]]]:
        """Send charges, and return those that must be sent again."""
        waiting: list[tuple[tuple[Address, tuple[Confirm, ...]], asyncio.Future[None]]] = []
        again: list[tuple[Address, tuple[Confirm, ...]]] = []
        for address, confirms in batch:
            try:
                kept = self._cluster.sender.send_durably(address, Confirms(confirms))
                waiting.append(((address, confirms), kept))
            except UnavailableError:
                again.append((address, confirms))
        if waiting:
            await asyncio.wait([kept for _, kept in waiting])
        again += [one for one, kept in waiting if kept.exception() is not None]
        self.failures += len(again)
        return await self._drop_charged(again) if again else []

    async def _drop_charged(
        self, batch: list[tuple[Address, tuple[Confirm, ...]]]
    ) -> list[tuple[Address, tuple[Confirm, ...]]]:
        ids = [one.request_id for _, confirms in batch for one in confirms]
        while True:
            try:
                rows = await self._cluster.pool.fetch(CHARGED, ids)
                break
            except Exception:  # noqa: BLE001 - a drill may have taken the database away
                await asyncio.sleep(PAUSE_SECONDS)
        known = {row["request_id"] for row in rows}
        left = [
            (address, tuple(one for one in confirms if one.request_id not in known))
            for address, confirms in batch
        ]
        return [one for one in left if one[1]]

    def _make(self, address: Address) -> tuple[Address, tuple[Confirm, ...]]:
        self._sent[address.key] += CONFIRMS
        confirms = tuple(
            msgspec.structs.replace(one, amount=Micros(PRICE + self._chance.randrange(PRICE)))
            for one in make_confirms(CONFIRMS)
        )
        self._sent_micros[address.key] += sum(one.amount for one in confirms)
        return address, confirms

    async def check(self) -> ChargeCheck:
        """Compare what was sent with the money ledger and the states."""
        pool = self._cluster.pool
        sums = {row["campaign_id"]: row for row in await pool.fetch(SUMS)}
        states = await read_states(pool, [make_campaign_kind()])
        lost = twice = wrong = over = 0
        for key, sent in self._sent.items():
            campaign_id, _ = parse_campaign_key(key)
            row = sums.get(campaign_id)
            charges = 0 if row is None else row["charges"]
            lost += max(0, sent - charges)
            twice += max(0, charges - sent)
            state = states.get(Address(CAMPAIGN, key))
            total = None if state is None else state.spent_total
            wrong += not total == (0 if row is None else row["micros"]) == self._sent_micros[key]
            budget = None if state is None else state.configured.daily_budget
            over += budget is not None and total is not None and total > budget
        today = SystemClock().now().date()
        async with pool.acquire() as connection:
            # Advertisers hear of a charge a moment after it is stored, and later on a busy machine.
            days = [
                await reconcile_settled(
                    connection, today + timedelta(days=one), retry_seconds=self._cluster.patience
                )
                for one in (-1, 0, 1)
            ]
        return ChargeCheck(
            sent=self._sent.total(),
            charged=sum(row["charges"] for row in sums.values()),
            lost=lost,
            twice=twice,
            wrong_states=wrong,
            over_budget=over,
            days=sum(one.charges > 0 for one in days),
            wrong_days=sum(not one.is_balanced for one in days),
        )


def make_confirms(count: int) -> tuple[Confirm, ...]:
    """Make charges of offers that were not charged before."""
    now, ids = SystemClock().now(), SystemIds()
    return tuple(
        Confirm(
            request_id=RequestId(ids.make()),
            slot=0,
            kind=ChargeKind.IMPRESSION,
            lease=1,
            second=int(now.timestamp()),
            amount=PRICE,
            banner_id=BannerId(ids.make()),
            placement_id=PlacementId(ids.make()),
            occurred_at=now,
        )
        for _ in range(count)
    )


async def ask_every_shard(cluster: Cluster) -> list[float]:
    """Ask a campaign of every shard at once; return the seconds that each took."""
    one_of: dict[int, Address] = {find_shard(address): address for address in cluster.campaigns}
    seconds_max = ANSWER_SECONDS_MAX * cluster.patience

    async def ask(address: Address) -> float:
        began_at = time.perf_counter()
        try:
            await cluster.sender.ask(address, AskBudget(), seconds_max=seconds_max)
        except (TimeoutError, UnavailableError):
            return float("inf")
        return time.perf_counter() - began_at

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(address)) for address in one_of.values()]
    return [task.result() for task in tasks]
