"""What may go wrong, how often, and a count of what did; and the clocks, which may be wrong."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timedelta
from random import Random  # noqa: TID251 - for its type
from typing import Final, TypeVar

import msgspec

from adloom.core.errors import UnavailableError
from simulation.loop import Trace

TRAVEL_SECONDS_MEAN: Final = 0.002
LONG_SECONDS: Final = 60.0
LATE_SECONDS_MAX: Final = 60.0
ON_ITS_WAY: Final = 0.5  # How often a message still arrives whose sender was killed meanwhile.

ResultT = TypeVar("ResultT")


class FaultRates(msgspec.Struct, frozen=True, kw_only=True):
    """How often what goes wrong: shares of calls, and mean seconds between outages."""

    refused: float = 0.0  # A call to a server fails before it has done anything.
    answer_lost: float = 0.0  # It fails after it has done its work, or a part of it.
    hung: float = 0.0  # It does its work and never answers.
    late: float = 0.0  # It fails, and does its work up to a minute later, when others have gone on.
    request_lost: float = 0.0  # A visitor's request does not arrive.
    response_lost: float = 0.0  # Its answer does not.
    repeated: float = 0.0  # A visitor sends again what was accepted.
    spoiled: float = 0.0  # An entry that is no event is appended, per page view.
    life_seconds_mean: float = float("inf")  # Of a process, before it is killed or stopped.
    outage_seconds_between: float = float("inf")  # Of a server.
    outage_seconds_mean: float = 5.0
    disk_failed: float = 0.0  # A delivery process's disk fails to do what it is asked, or does a part.
    clock_seconds_between: float = float("inf")  # Of a delivery process, before it is set wrong or right.
    clock_hours_max: float = 6.0
    readers_forgotten: float = 0.0  # The event log comes back without its consumer groups, per outage.
    # Budgets only.
    died: float = 0.0  # A process ends at this very await: before it, or after it has worked.
    mail_lost: float = 0.0
    mail_repeated: float = 0.0
    mail_delayed: float = 0.0  # By seconds, so that others overtake it.
    owned_twice: float = 0.0  # A worker takes the leader lock while another has it.
    unheld: float = 0.0  # A visitor's address is beyond its bounds.
    unseen: float = 0.0  # No visitor ever looks at an offer.
    seen_late: float = 0.0  # A visitor looks when the hold may be over.
    change_seconds_between: float = float("inf")  # Until a person changes a budget, or a campaign.
    index_seconds_max: float = 0.0  # Until a delivery process knows of it.


NO_FAULTS: Final = FaultRates()
ROUGH: Final = FaultRates(
    refused=0.03,
    answer_lost=0.05,
    hung=0.005,
    late=0.01,
    request_lost=0.02,
    response_lost=0.05,
    repeated=0.1,
    spoiled=0.02,
    life_seconds_mean=20.0,
    outage_seconds_between=60.0,
    disk_failed=0.02,
    clock_seconds_between=60.0,
    readers_forgotten=0.3,
)
ROUGH_BUDGETS: Final = FaultRates(
    refused=0.01,
    answer_lost=0.02,
    hung=0.002,
    late=0.01,
    repeated=0.1,
    life_seconds_mean=20.0,
    outage_seconds_between=30.0,
    outage_seconds_mean=2.0,
    clock_seconds_between=20.0,
    clock_hours_max=0.02,
    readers_forgotten=0.3,
    died=0.005,
    mail_lost=0.05,
    mail_repeated=0.05,
    mail_delayed=0.03,
    owned_twice=0.1,
    unheld=0.1,
    unseen=0.3,
    seen_late=0.1,
    change_seconds_between=3.0,
    index_seconds_max=2.0,
)
ORDINARY: Final = FaultRates(
    refused=0.001,
    answer_lost=0.001,
    hung=0.0001,
    late=0.0005,
    request_lost=0.002,
    response_lost=0.002,
    repeated=0.02,
    spoiled=0.0005,
    life_seconds_mean=3 * 3600.0,
    outage_seconds_between=12 * 3600.0,
    outage_seconds_mean=20.0,
    disk_failed=0.001,
    clock_seconds_between=24 * 3600.0,
    readers_forgotten=0.1,
)


class Faults:
    """Decides by chance what goes wrong, and keeps count."""

    def __init__(self, rates: FaultRates, chance: Random, trace: Trace) -> None:
        self.rates = rates
        self.chance = chance
        self.trace = trace
        self.injected: Counter[str] = Counter()

    def strikes(self, fault: str, rate: float) -> bool:
        if self.chance.random() >= rate:
            return False
        self.injected[fault] += 1
        self.trace.note(fault)
        return True

    def draw_seconds(self, mean: float) -> float:
        return self.chance.expovariate(1 / mean) if mean < float("inf") else mean

    def end(self) -> None:
        self.rates = NO_FAULTS

    def delay_call(self, what: str, work: Callable[[], None]) -> bool:
        """Return whether a call is held up; its work is done up to a minute later, when the caller has given up."""
        if not self.strikes(what, self.rates.late):
            return False
        asyncio.get_running_loop().call_later(self.chance.uniform(0, LATE_SECONDS_MAX), work)
        return True

    async def travel(self) -> None:
        """Sleep as long as a message travels."""
        await asyncio.sleep(self.draw_seconds(TRAVEL_SECONDS_MEAN))


class Host:
    """One life of a process: once dead, nothing that it does reaches anything."""

    def __init__(self) -> None:
        self.died: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_alive(self) -> bool:
        return not self.died.done()

    def kill(self) -> None:
        if self.is_alive:
            self.died.set_result(None)


class Outages:
    """Whether a server is up; an outage loses nothing that was confirmed."""

    def __init__(
        self,
        name: str,
        faults: Faults,
        *,
        on_leaving: Callable[[], None] | None = None,
        on_forgetting: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._faults = faults
        self._on_leaving = on_leaving
        self._on_forgetting = on_forgetting
        self.is_up = True

    def check(self, host: Host) -> None:
        """Raise unless both ends of a connection are up."""
        if not (self.is_up and host.is_alive):
            raise UnavailableError(f"The {self._name} is away.")

    async def come_and_go(self, ending: asyncio.Event) -> None:
        """Go away and come back until the end."""
        faults = self._faults
        while await wait_unless(ending, faults.draw_seconds(faults.rates.outage_seconds_between)):
            self.is_up = False
            if self._on_leaving is not None:
                self._on_leaving()
            seconds = faults.draw_seconds(faults.rates.outage_seconds_mean)
            faults.injected[f"{self._name} away{' for over a minute' * (seconds > LONG_SECONDS)}"] += 1
            await wait_unless(ending, seconds)
            if self._on_forgetting is not None and faults.strikes(
                f"{self._name} forgot its readers", faults.rates.readers_forgotten
            ):
                self._on_forgetting()
            self.is_up = True


class Lock:
    """A lock on a server, with a time limit."""

    def __init__(self) -> None:
        self._owner: str | None = None
        self._ends_at = 0.0

    def is_anothers(self, name: str) -> bool:
        return self._owner not in (None, name) and self._ends_at > asyncio.get_running_loop().time()

    def take(self, name: str, seconds: float) -> bool:
        """Take or renew it; return whether it was not that owner's the last time."""
        before = self._owner
        self._owner, self._ends_at = name, asyncio.get_running_loop().time() + seconds
        return before != name

    def release(self, name: str) -> None:
        if not self.is_anothers(name):
            self._owner = None


class Connection:
    """One process's way to a server; a call may fail at either end, and the process may die there."""

    def __init__(
        self, faults: Faults, outages: Outages, host: Host, *, hang_seconds_max: float = 0.0
    ) -> None:
        self._faults = faults
        self._outages = outages
        self._host = host
        self._hang_seconds_max = hang_seconds_max

    @contextlib.asynccontextmanager
    async def call(self, what: str) -> AsyncGenerator[None]:
        """Do work on the server, unless the call does not arrive; the answer may be lost."""
        await self.begin(what)
        yield
        await self.end(what)

    async def begin(self, what: str) -> None:
        """Raise if the call does not arrive."""
        await self._faults.travel()
        if self._faults.strikes(f"died before {what}", self._faults.rates.died):
            self._host.kill()
        self._outages.check(self._host)
        if self._faults.strikes(f"{what} refused", self._faults.rates.refused):
            raise UnavailableError("Refused.")

    async def end(self, what: str) -> None:
        """Raise if the answer does not arrive: the work is done all the same."""
        faults = self._faults
        if faults.strikes(f"died after {what}", faults.rates.died):
            self._host.kill()
        if self._hang_seconds_max and faults.strikes(f"{what} slow", faults.rates.hung):
            await asyncio.sleep(faults.chance.uniform(0, self._hang_seconds_max))
        await faults.travel()
        self._outages.check(self._host)
        if faults.strikes(f"{what} unanswered", faults.rates.answer_lost):
            raise UnavailableError("The answer was lost.")

    async def transact(self, what: str, work: Callable[[], ResultT], *refusals: type[Exception]) -> ResultT:
        """Do a transaction now, much later or never; and answer, or not."""

        def work_late() -> None:
            with contextlib.suppress(*refusals):
                work()

        was_alive = self._host.is_alive
        try:
            await self.begin(what)
        except UnavailableError:
            # What a process sent before it was killed may still arrive.
            is_sent = was_alive and not self._host.is_alive and self._outages.is_up
            if is_sent and self._faults.chance.random() < ON_ITS_WAY:
                work_late()
            raise
        if self._faults.delay_call(f"{what} late", work_late):
            raise UnavailableError("It takes too long.")
        result = work()
        await self.end(what)
        return result


async def wait_unless(ending: asyncio.Event, seconds: float) -> bool:
    """Wait so long; False if the end comes first."""
    try:
        async with asyncio.timeout(None if seconds == float("inf") else seconds):
            await ending.wait()
    except TimeoutError:
        return True
    return False


class VirtualClock:
    """The time of the run."""

    def __init__(self, starts_at: datetime) -> None:
        self._starts_at = starts_at

    def now(self) -> datetime:
        return self._starts_at + timedelta(seconds=asyncio.get_running_loop().time())


class WallClock:
    """The clock of one process or server, which may jump back and ahead."""

    def __init__(self, true_clock: VirtualClock, faults: Faults, *, hours_max: float | None = None) -> None:
        self._true_clock = true_clock
        self._faults = faults
        self._hours_max = faults.rates.clock_hours_max if hours_max is None else hours_max
        self._wrong_by = timedelta()

    def now(self) -> datetime:
        return self._true_clock.now() + self._wrong_by

    async def jump(self, ending: asyncio.Event) -> None:
        """Be set wrong, and right again, until the end."""
        faults = self._faults
        while await wait_unless(ending, faults.draw_seconds(faults.rates.clock_seconds_between)):
            faults.injected["clock jumped"] += 1
            hours = faults.chance.choice([0.0, self._hours_max])
            self._wrong_by = timedelta(hours=faults.chance.uniform(-hours, hours))
        self._wrong_by = timedelta()
