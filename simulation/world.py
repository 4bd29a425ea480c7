"""The event log on virtual time: visitors, delivery processes, workers, servers, a disk, and their faults."""

import asyncio
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Final

import msgspec

from adloom.core.ids import BannerId, PlacementId
from adloom.events.log.event import Impression, encode_event
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from simulation import loop as virtual
from simulation.base_world import BaseWorld
from simulation.campaigns import SLUG, SimulatedCampaigns
from simulation.chance import seeded
from simulation.disk import Disk
from simulation.faults import LATE_SECONDS_MAX, FaultRates
from simulation.laws import Books, burial_violations, violations
from simulation.ledger import LedgerServer
from simulation.processes import (
    BRISK,
    ConnectionLostError,
    DeliveryProcess,
    Pace,
    Servers,
    WorkerProcess,
)
from simulation.readers import Readers
from simulation.tables import SURPRISING, UNFOLDABLE, TablesServer, TopicServer

START: Final = datetime(2026, 11, 15, tzinfo=UTC)
DAY_SECONDS: Final = 86_400.0
CAMPAIGNS: Final = 3
SPOOL_BYTES_MAX: Final = 2**20


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to simulate; servers can be replaced by broken ones."""

    seed: int
    seconds: float
    views_per_second: float
    faults: FaultRates
    starts_at: datetime = START
    pace: Pace = BRISK
    delivery_processes: int = 2
    workers: int = 2
    spool_bytes_max: int = SPOOL_BYTES_MAX
    ledger: type[LedgerServer] = LedgerServer
    tables: type[TablesServer] = TablesServer
    topic: type[TopicServer] = TopicServer
    disk: type[Disk] = Disk


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    seed: int
    requests: int
    unserved: int
    refused: int
    sent: int
    accepted: int
    impressions: int
    clicks: int
    invalid: int
    spooled: int
    buried: int
    trimmed: int
    faults: Mapping[str, int]
    violations: tuple[str, ...]
    steps: int
    digest: str


class World(BaseWorld):
    """Everything of one run."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.seed, plan.starts_at, plan.faults)
        self._plan = plan
        catalog = SimulatedCampaigns(
            self._ids, seeded(plan.seed, "people"), campaigns=CAMPAIGNS, has_budgets=False
        )
        self._index = catalog.index()
        ledger = plan.ledger(self._faults, self._clock)
        self._servers = Servers(
            ledger=ledger,
            tables=plan.tables(self._faults, catalog.keys()),
            topic=plan.topic(self._faults, ledger.outages),
            disk=plan.disk(self._faults),
        )
        self._delivery: list[DeliveryProcess | None] = [None] * plan.delivery_processes
        self._readers = Readers(self._ask, self._faults, self._clock, self._ids, seeded(plan.seed, "readers"))
        self._spoiled: list[bytes] = []

    async def run(self) -> Outcome:
        """Follow the plan, let everything settle, and check the laws."""
        async with asyncio.TaskGroup() as house:
            for number in range(self._plan.delivery_processes):
                house.create_task(self._keep_delivery(number, house))
            for number in range(self._plan.workers):
                house.create_task(self._keep_worker(number, house))
            house.create_task(self._servers.ledger.outages.come_and_go(self._is_calm))
            house.create_task(self._servers.tables.outages.come_and_go(self._is_calm))
            await self._traffic()
            self._calm_down()
            await asyncio.sleep(LATE_SECONDS_MAX)
            await self._wait_until(
                lambda: not self._list_unsettled(), seconds_max=self._plan.pace.settle_seconds_max
            )
            unsettled = self._list_unsettled()
            self._is_over.set()
        return self._build_outcome(unsettled)

    async def _traffic(self) -> None:
        clock = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as views:
            while clock() < self._plan.seconds:
                rate = self._plan.views_per_second * _traffic_share(clock())
                await asyncio.sleep(self._chance.expovariate(rate))
                views.create_task(self._readers.view_page(SLUG))
                if self._faults.strikes("entry spoiled", self._faults.rates.spoiled):
                    self._spoil()

    def _spoil(self) -> None:
        """Append an entry that cannot be decoded, that no table takes, or that crashes the program."""
        number = len(self._spoiled)
        entry = b"no event %d" % number
        if name := ("", UNFOLDABLE, SURPRISING)[number % 3]:
            now = self._clock.now()
            entry = encode_event(
                Impression(
                    correlation_id=f"{name} {number}",
                    banner_id=BannerId(self._ids.new()),
                    placement_id=PlacementId(self._ids.new()),
                    occurred_at=now,
                    received_at=now,
                )
            )
        self._spoiled.append(entry)
        self._servers.ledger.take(entry)

    async def _keep_delivery(self, number: int, house: asyncio.TaskGroup) -> None:
        clock = self._make_wall_clock(house)

        def start() -> DeliveryProcess:
            process = DeliveryProcess(
                f"delivery-{number}",
                self._servers,
                self._index,
                clock=clock,
                ids=self._ids,
                spool_bytes_max=self._plan.spool_bytes_max,
                pace=self._plan.pace,
            )
            self._delivery[number] = process
            return process

        await self._keep_alive("delivery", start, house)

    async def _keep_worker(self, number: int, house: asyncio.TaskGroup) -> None:
        clock = self._make_wall_clock(house)

        def start() -> WorkerProcess:
            return WorkerProcess(f"worker-{number}", self._servers, clock=clock, pace=self._plan.pace)

        await self._keep_alive("worker", start, house)

    async def _ask(self, request: FastRequest) -> FastAnswer:
        process = self._chance.choice(self._delivery)
        if process is None or not process.host.is_alive:
            raise ConnectionLostError
        return await process.ask(request)

    def _list_unsettled(self) -> list[str]:
        today, servers = self._clock.now().date(), self._servers
        said = {
            "the tables never caught up": servers.tables.cursor != servers.ledger.last_id,
            "the topic never caught up": servers.topic.cursor != servers.ledger.last_id,
            "the spool was never drained": bool(servers.disk.files),
            "a day that is over was not rolled up again": bool(servers.tables.stale_days(before=today)),
        }
        return [sentence for sentence, is_so in said.items() if is_so]

    def _build_outcome(self, unsettled: list[str]) -> Outcome:
        witness, servers, tables = self._readers.witness, self._servers, self._servers.tables
        letters = servers.ledger.dead.values()
        statistics = tables.statistics()
        for day in tables.stale_days(before=date.max):
            tables.roll_up(day)
        books = Books(
            rows=tables.said_rows(),
            counts={
                "the live counters": tables.counts,
                "the statistics": statistics,
                "the rollup": tables.rolled_up,
                "the statistics from the rollup": tables.statistics(),
            },
            invalid_counts=tables.invalid_counts,
            topic=servers.topic.told,
        )
        broken = [*unsettled, *violations(witness, books), *burial_violations(self._spoiled, letters)]
        return Outcome(
            seed=self._plan.seed,
            requests=self._readers.requests,
            unserved=self._readers.unserved,
            refused=self._readers.refused,
            sent=len(witness.sent),
            accepted=len(witness.accepted),
            impressions=sum(count for (_, kind), count in tables.counts.items() if kind == "impression"),
            clicks=sum(count for (_, kind), count in tables.counts.items() if kind == "click"),
            invalid=sum(tables.invalid_counts.values()),
            spooled=servers.disk.writes,
            buried=len(letters),
            trimmed=servers.ledger.trimmed,
            faults=dict(sorted(self._faults.injected.items())),
            violations=tuple(broken),
            steps=self._trace.steps,
            digest=self._trace.digest,
        )


def simulate(plan: Plan) -> Outcome:
    async def run() -> Outcome:
        return await World(plan).run()

    return virtual.run(plan.seed, run())


def _traffic_share(seconds: float) -> float:
    return 1 + 0.8 * math.sin(2 * math.pi * (seconds / DAY_SECONDS - 0.5))
