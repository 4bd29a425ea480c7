"""What every simulated world shares: virtual time, faults, and processes that end and start again."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from simulation.chance import SeededIds, Trace, seeded
from simulation.faults import FaultRates, Faults, Host, VirtualClock, WallClock

KILLED: Final = 0.75  # The share of lives that end by a kill; the others are asked to stop.
RESTART_SECONDS_MEAN: Final = 1.0
STOP_SECONDS_MAX: Final = 20.0


class SimulatedProcess(Protocol):
    """A process in one of its lives."""

    host: Host

    async def run(self, stop: asyncio.Event) -> None: ...


class BaseWorld:
    """One run: chaos until `_is_calm`, then what was begun finishes until `_is_over`."""

    def __init__(self, seed: int, starts_at: datetime, rates: FaultRates) -> None:
        self._trace = Trace()
        self._faults = Faults(rates, seeded(seed, "faults"), self._trace)
        self._chance = seeded(seed, "traffic")
        self._clock = VirtualClock(starts_at)
        self._ids = SeededIds(seed, "ids")
        self._is_calm = asyncio.Event()
        self._is_over = asyncio.Event()

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
            await asyncio.sleep(faults.seconds(RESTART_SECONDS_MEAN))

    async def _wait_for_end(self, process: SimulatedProcess) -> None:
        """Wait until a process dies by itself, its time is up, or the run is over."""
        seconds = self._faults.seconds(self._faults.rates.life_seconds_mean)
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
