"""The whole house on virtual time: readers, delivery processes, workers, servers, and the faults of all."""

import asyncio
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import msgspec

from adloom.core.ids import BannerId, PlacementId
from adloom.ledger.event import Impression, encoded
from adloom.runtime.http.hot import Answer, HotRequest
from adloom.simulation import loop as virtual
from adloom.simulation.catalog import SLUG, an_index
from adloom.simulation.chance import SeededIds, seeded
from adloom.simulation.faults import FaultRates, Faults, waited
from adloom.simulation.laws import burial_violations, counting_violations
from adloom.simulation.processes import ConnectionLostError, DeliveryProcess, WorkerProcess
from adloom.simulation.readers import Readers
from adloom.simulation.servers import UNFOLDABLE, LedgerServer, TablesServer
from adloom.simulation.trace import Trace

START: Final = datetime(2026, 11, 15, tzinfo=UTC)
DAY_SECONDS: Final = 86_400.0
CATCH_UP_SECONDS_MAX: Final = 3_600.0
KILLED: Final = 0.8  # The share of lives that end by a kill; the others are asked to stop.
RESTART_SECONDS_MEAN: Final = 1.0

ProcessT = TypeVar("ProcessT", DeliveryProcess, WorkerProcess)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to simulate; the servers can be replaced by worse ones."""

    seed: int
    seconds: float
    views_per_second: float
    faults: FaultRates
    delivery_processes: int = 2
    workers: int = 2
    ledger: type[LedgerServer] = LedgerServer
    tables: type[TablesServer] = TablesServer


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    seed: int
    requests: int
    unserved: int
    sent: int
    accepted: int
    impressions: int
    clicks: int
    buried: int
    faults: Mapping[str, int]
    violations: tuple[str, ...]
    steps: int
    digest: str


class VirtualClock:
    """Tells the loop's moment as a time of day."""

    def now(self) -> datetime:
        """Tell the virtual moment."""
        return START + timedelta(seconds=asyncio.get_running_loop().time())


class World:
    """Everything of one run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._trace = Trace()
        self._faults = Faults(plan.faults, seeded(plan.seed, "faults"), self._trace)
        self._chance = seeded(plan.seed, "traffic")
        self._clock = VirtualClock()
        self._ids = SeededIds(plan.seed, "ids")
        self._index = an_index(self._ids)
        self._ledger = plan.ledger(self._faults, self._clock)
        self._tables = plan.tables(self._faults)
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
            for _ in range(self._plan.workers):
                house.create_task(self._keep_worker(house))
            house.create_task(self._ledger.outages.come_and_go(self._is_calm))
            house.create_task(self._tables.outages.come_and_go(self._is_calm))
            await self._traffic()
            self._faults.end()
            self._is_calm.set()
            is_caught_up = await self._caught_up()
            self._is_over.set()
        return self._outcome([] if is_caught_up else ["the projection never caught up"])

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
        entry = b"no event %d" % len(self._spoiled)
        if len(self._spoiled) % 2:
            now = self._clock.now()
            entry = encoded(
                Impression(
                    correlation_id=UNFOLDABLE,
                    banner_id=BannerId(self._ids.new()),
                    placement_id=PlacementId(self._ids.new()),
                    occurred_at=now,
                    received_at=now,
                )
            )
        self._spoiled.append(entry)
        self._ledger.take(entry)

    async def _keep_delivery(self, number: int, house: asyncio.TaskGroup) -> None:
        def start() -> DeliveryProcess:
            process = DeliveryProcess(self._ledger, self._index, self._clock, self._ids)
            self._delivery[number] = process
            return process

        await self._keep("delivery", start, house)

    async def _keep_worker(self, house: asyncio.TaskGroup) -> None:
        await self._keep("worker", lambda: WorkerProcess(self._ledger, self._tables, self._clock), house)

    async def _keep(self, name: str, start: Callable[[], ProcessT], house: asyncio.TaskGroup) -> None:
        """Run a process, and start it again whenever chance has ended it."""
        faults = self._faults
        is_cut = True
        while is_cut:
            stop = asyncio.Event()
            process = start()
            house.create_task(process.run(stop))
            is_cut = await waited(self._is_calm, faults.seconds(faults.rates.life_seconds_mean))
            if not is_cut:
                await self._is_over.wait()
            elif faults.strikes(f"{name} killed", KILLED):
                process.host.kill()
            stop.set()
            await asyncio.sleep(faults.seconds(RESTART_SECONDS_MEAN))

    async def _ask(self, request: HotRequest) -> Answer:
        process = self._chance.choice(self._delivery)
        if process is None or not process.host.is_alive:
            raise ConnectionLostError
        return await process.ask(request)

    async def _caught_up(self) -> bool:
        for _ in range(int(CATCH_UP_SECONDS_MAX)):
            if self._tables.cursor == self._ledger.last_id:
                return True
            await asyncio.sleep(1)
        return False

    def _outcome(self, violations: list[str]) -> Outcome:
        witness, rows, totals = self._readers.witness, self._tables.rows, self._tables.totals
        violations += counting_violations(witness, rows, totals)
        violations += burial_violations(self._spoiled, self._ledger.buried)
        return Outcome(
            seed=self._plan.seed,
            requests=self._readers.requests,
            unserved=self._readers.unserved,
            sent=len(witness.sent),
            accepted=len(witness.accepted),
            impressions=sum(count for (_, kind), count in totals.items() if kind == "impression"),
            clicks=sum(count for (_, kind), count in totals.items() if kind == "click"),
            buried=len(self._spoiled),
            faults=dict(sorted(self._faults.injected.items())),
            violations=tuple(violations),
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
