"""What every simulated world shares: a plan, virtual time, faults, processes that end and start again, an outcome."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from adloom.core.clock import Clock
from simulation import loop as virtual
from simulation.faults import FaultRates, Faults, Host, Outages, VirtualClock, WallClock
from simulation.loop import SeededIds, Trace, make_random

START: Final = datetime(2026, 11, 15, tzinfo=UTC)
KILLED: Final = 0.75  # The share of lives that end by a kill; the others are asked to stop.
RESTART_SECONDS_MEAN: Final = 1.0
STOP_SECONDS_MAX: Final = 20.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to simulate."""

    seed: int
    seconds: float
    views_per_second: float
    faults: FaultRates
    starts_at: datetime = START
    delivery_processes: int = 2
    workers: int = 2


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    seed: int
    figures: Mapping[str, int]  # By what they count, in words.
    faults: Mapping[str, int]
    violations: tuple[str, ...]
    steps: int
    digest: str


class SimulatedProcess(Protocol):
    """A process in one of its lives."""

    @property
    def host(self) -> Host: ...

    async def run(self, stop: asyncio.Event) -> None: ...


PlanT = TypeVar("PlanT", bound=Plan)
DeliveryT = TypeVar("DeliveryT", bound=SimulatedProcess)


class BaseWorld(ABC, Generic[PlanT, DeliveryT]):
    """One run: chaos until `_is_calm`, then what was begun finishes until `_is_over`."""

    def __init__(self, plan: PlanT) -> None:
        self._plan = plan
        self._trace = Trace()
        self._faults = Faults(plan.faults, make_random(plan.seed, "faults"), self._trace)
        self._chance = make_random(plan.seed, "traffic")
        self._clock = VirtualClock(plan.starts_at)
        self._ids = SeededIds(plan.seed)
        self._delivery: dict[int, DeliveryT] = {}
        self._is_calm = asyncio.Event()
        self._is_over = asyncio.Event()
        self.violations: list[str] = []

    @abstractmethod
    async def run(self) -> None: ...

    @abstractmethod
    def _start_worker(self, name: str, clock: Clock) -> SimulatedProcess: ...

    @abstractmethod
    def _start_delivery(self, number: int, clock: Clock) -> DeliveryT: ...

    @abstractmethod
    def _count(self) -> dict[str, int]: ...

    def build_outcome(self) -> Outcome:
        return Outcome(
            seed=self._plan.seed,
            figures=self._count(),
            faults=dict(sorted(self._faults.injected.items())),
            violations=tuple(self.violations),
            steps=self._trace.steps,
            digest=self._trace.digest,
        )

    def _begin(self, tasks: asyncio.TaskGroup, *outages: Outages) -> None:
        """Start the processes, each with a clock of its own, and the outages of servers."""
        for number in range(self._plan.workers):
            start = partial(self._start_worker, f"worker-{number}", self._make_wall_clock(tasks))
            tasks.create_task(self._keep_alive("worker", start, tasks))
        for number in range(self._plan.delivery_processes):
            start = partial(self._start_delivery, number, self._make_wall_clock(tasks))
            tasks.create_task(self._keep_alive("delivery", start, tasks))
        for one in outages:
            tasks.create_task(one.come_and_go(self._is_calm))

    def _pick_delivery(self) -> DeliveryT | None:
        """Return a process that is alive, or none where chance picks a dead one."""
        process = self._delivery.get(self._chance.randrange(self._plan.delivery_processes))
        return process if process is not None and process.host.is_alive else None

    def _make_wall_clock(self, tasks: asyncio.TaskGroup) -> WallClock:
        clock = WallClock(self._clock, self._faults)
        tasks.create_task(clock.jump(self._is_calm))
        return clock

    def _calm_down(self) -> None:
        self._faults.end()
        self._is_calm.set()

    async def _keep_alive(
        self, name: str, start: Callable[[], SimulatedProcess], tasks: asyncio.TaskGroup
    ) -> None:
        """Run a process, and start it again whenever chance has ended it, from outside or at one of its calls."""
        faults = self._faults
        while not self._is_over.is_set():
            stop = asyncio.Event()
            process = start()
            running = tasks.create_task(process.run(stop))
            await self._wait_for_end(process)
            if not self._is_over.is_set() and faults.strikes(f"{name} killed", KILLED):
                process.host.kill()
            stop.set()
            if process.host.is_alive:
                await asyncio.wait([running], timeout=STOP_SECONDS_MAX)
                process.host.kill()  # It has ended, and holds nothing any more.
            await asyncio.sleep(faults.draw_seconds(RESTART_SECONDS_MEAN))

    async def _wait_for_end(self, process: SimulatedProcess) -> None:
        """Wait until a process dies by itself, its time is up, or the run is over."""
        seconds = self._faults.draw_seconds(self._faults.rates.life_seconds_mean)
        over = asyncio.ensure_future(self._is_over.wait())
        calm = asyncio.ensure_future(self._is_calm.wait())
        await asyncio.wait(
            [process.host.died, calm, over],
            timeout=None if seconds == float("inf") else seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if self._is_calm.is_set():
            await asyncio.wait([process.host.died, over], return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        calm.cancel()

    async def _wait_until(self, is_so: Callable[[], bool], *, seconds_max: float) -> None:
        ends_at = asyncio.get_running_loop().time() + seconds_max
        while not is_so() and asyncio.get_running_loop().time() < ends_at:  # noqa: ASYNC110 - looking costs nothing here
            await asyncio.sleep(1)


def run_world(build: Callable[[PlanT], BaseWorld[PlanT, DeliveryT]], plan: PlanT) -> Outcome:
    """Run a world to its end on virtual time."""
    worlds: list[BaseWorld[PlanT, DeliveryT]] = []

    async def run() -> None:
        worlds.append(build(plan))
        await worlds[0].run()

    try:
        virtual.run(plan.seed, run())
    except virtual.StuckError:
        worlds[0].violations.append("a deadlock, or a busy loop")
    return worlds[0].build_outcome()
