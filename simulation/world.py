"""The whole house on virtual time: readers, delivery processes, workers, servers, a disk, and the faults of all."""

import asyncio
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Final, TypeVar

import msgspec

from adloom.core.ids import BannerId, PlacementId
from adloom.events.log.event import Impression, encode_event
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from simulation import loop as virtual
from simulation.catalog import SLUG, a_catalog
from simulation.chance import SeededIds, seeded
from simulation.clocks import VirtualClock, WallClock
from simulation.disk import Disk
from simulation.faults import LATE_SECONDS_MAX, FaultRates, Faults, waited
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
from simulation.tables import SURPRISING, UNFOLDABLE, TablesServer
from simulation.topic import TopicServer
from simulation.trace import Trace

START: Final = datetime(2026, 11, 15, tzinfo=UTC)
DAY_SECONDS: Final = 86_400.0
KILLED: Final = 0.8  # The share of lives that end by a kill; the others are asked to stop.
RESTART_SECONDS_MEAN: Final = 1.0
SPOOL_BYTES_MAX: Final = 2**20

ProcessT = TypeVar("ProcessT", DeliveryProcess, WorkerProcess)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to simulate; the servers can be replaced by worse ones."""

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


class World:
    """Everything of one run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._trace = Trace()
        self._faults = Faults(plan.faults, seeded(plan.seed, "faults"), self._trace)
        self._chance = seeded(plan.seed, "traffic")
        self._clock = VirtualClock(plan.starts_at)
        self._ids = SeededIds(plan.seed, "ids")
        catalog = a_catalog(self._ids)
        self._index = catalog.index
        ledger = plan.ledger(self._faults, self._clock)
        self._servers = Servers(
            ledger=ledger,
            tables=plan.tables(self._faults, catalog.keys),
            topic=plan.topic(self._faults, ledger.outages),
            disk=plan.disk(self._faults),
        )
        self._delivery: list[DeliveryProcess | None] = [None] * plan.delivery_processes
        self._readers = Readers(self._ask, self._faults, self._clock, self._ids, seeded(plan.seed, "readers"))
        self._spoiled: list[bytes] = []
        self._is_calm = asyncio.Event()  # No more faults: what was begun shall be finished.
        self._is_over = asyncio.Event()

    async def run(self) -> Outcome:
        """Live through the plan, let everything come to rest, and judge."""
        async with asyncio.TaskGroup() as house:
            for number in range(self._plan.delivery_processes):
                house.create_task(self._keep_delivery(number, house))
            for number in range(self._plan.workers):
                house.create_task(self._keep_worker(number, house))
            house.create_task(self._servers.ledger.outages.come_and_go(self._is_calm))
            house.create_task(self._servers.tables.outages.come_and_go(self._is_calm))
            await self._traffic()
            self._faults.end()
            self._is_calm.set()
            unsettled = await self._settled()
            self._is_over.set()
        return self._outcome(unsettled)

    async def _traffic(self) -> None:
        clock = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as views:
            while clock() < self._plan.seconds:
                rate = self._plan.views_per_second * _busyness(clock())
                await asyncio.sleep(self._chance.expovariate(rate))
                views.create_task(self._readers.view_page(SLUG))
                if self._faults.strikes("entry spoiled", self._faults.rates.spoiled):
                    self._spoil()

    def _spoil(self) -> None:
        """Put into the ledger what cannot be read, what no table takes, or what the program fails over."""
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
        clock = self._a_wall_clock(house)

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

        await self._keep("delivery", start, house)

    async def _keep_worker(self, number: int, house: asyncio.TaskGroup) -> None:
        clock = self._a_wall_clock(house)

        def start() -> WorkerProcess:
            return WorkerProcess(f"worker-{number}", self._servers, clock=clock, pace=self._plan.pace)

        await self._keep("worker", start, house)

    def _a_wall_clock(self, house: asyncio.TaskGroup) -> WallClock:
        clock = WallClock(self._clock, self._faults)
        house.create_task(clock.jump(self._is_calm))
        return clock

    async def _keep(self, name: str, start: Callable[[], ProcessT], house: asyncio.TaskGroup) -> None:
        """Run a process, and start it again whenever chance has ended it."""
        faults = self._faults
        is_cut = True
        while is_cut:
            stop = asyncio.Event()
            process = start()
            running = house.create_task(process.run(stop))
            is_cut = await waited(self._is_calm, faults.seconds(faults.rates.life_seconds_mean))
            if not is_cut:
                await self._is_over.wait()
            is_killed = is_cut and faults.strikes(f"{name} killed", KILLED)
            if is_killed:
                process.host.kill()
            stop.set()
            if not is_killed:
                await asyncio.wait([running])
                process.host.kill()  # It has ended, and holds nothing any more.
            await asyncio.sleep(faults.seconds(RESTART_SECONDS_MEAN))

    async def _ask(self, request: FastRequest) -> FastAnswer:
        process = self._chance.choice(self._delivery)
        if process is None or not process.host.is_alive:
            raise ConnectionLostError
        return await process.ask(request)

    async def _settled(self) -> list[str]:
        """Wait until everything has gone through, and tell what has not."""
        await asyncio.sleep(LATE_SECONDS_MAX)
        unsettled: list[str] = []
        for _ in range(int(self._plan.pace.settle_seconds_max)):
            unsettled = self._unsettled()
            if not unsettled:
                break
            await asyncio.sleep(1)
        return unsettled

    def _unsettled(self) -> list[str]:
        today, servers = self._clock.now().date(), self._servers
        said = {
            "the tables never caught up": servers.tables.cursor != servers.ledger.last_id,
            "the topic never caught up": servers.topic.cursor != servers.ledger.last_id,
            "the spool was never drained": bool(servers.disk.files),
            "a day that is over was not rolled up again": bool(servers.tables.stale_days(before=today)),
        }
        return [sentence for sentence, is_so in said.items() if is_so]

    def _outcome(self, unsettled: list[str]) -> Outcome:
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


def simulated(plan: Plan) -> Outcome:
    """Run a plan on virtual time."""

    async def run() -> Outcome:
        return await World(plan).run()

    return virtual.run(plan.seed, run())


def _busyness(seconds: float) -> float:
    """Tell how busy the hour is: nights are quiet, evenings are not."""
    return 1 + 0.8 * math.sin(2 * math.pi * (seconds / DAY_SECONDS - 0.5))
