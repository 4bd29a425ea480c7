"""Clocks: the true one of the run, and those of processes, which are set wrong and right again."""

import asyncio
from datetime import datetime, timedelta

from simulation.faults import Faults, wait_unless


class VirtualClock:
    """The time of the run."""

    def __init__(self, starts_at: datetime) -> None:
        self._starts_at = starts_at

    def now(self) -> datetime:
        return self._starts_at + timedelta(seconds=asyncio.get_running_loop().time())


class WallClock:
    """The clock of one process, which may jump back and ahead."""

    def __init__(self, true_clock: VirtualClock, faults: Faults) -> None:
        self._true_clock = true_clock
        self._faults = faults
        self._wrong_by = timedelta()

    def now(self) -> datetime:
        return self._true_clock.now() + self._wrong_by

    async def jump(self, ending: asyncio.Event) -> None:
        """Be set wrong, and right again, until the end."""
        faults = self._faults
        while await wait_unless(ending, faults.seconds(faults.rates.clock_seconds_between)):
            faults.injected["clock jumped"] += 1
            hours = faults.chance.choice([0.0, faults.rates.clock_hours_max])
            self._wrong_by = timedelta(hours=faults.chance.uniform(-hours, hours))
        self._wrong_by = timedelta()
