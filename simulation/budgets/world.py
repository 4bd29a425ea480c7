"""The house of budgets on virtual time: workers, delivery processes, people, readers, servers, and the faults of all."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec

from adloom.budgets.kinds import make_kinds
from adloom.budgets.messages import OpenWindow
from adloom.budgets.transport.wire import INBOX_CHANNEL, SESSION_SECONDS_MAX, encode_envelopes
from adloom.core.clock import Clock
from adloom.resource.changes import NOTICE_CHANNEL
from adloom.schedule.budget_day import find_budget_day
from simulation import loop as virtual
from simulation.budgets.catalog import MoneyCatalog
from simulation.budgets.database import MoneyDatabase
from simulation.budgets.faults import MoneyFaultRates, MoneyFaults
from simulation.budgets.laws import MoneyLaws
from simulation.budgets.processes import BudgetWorkerProcess, Kinds, MoneyServers
from simulation.budgets.readers import Ledger, MoneyReaders
from simulation.budgets.selling import SellingProcess
from simulation.budgets.valkey import ValkeyServer
from simulation.chance import SeededIds, seeded
from simulation.clocks import VirtualClock, WallClock
from simulation.faults import LATE_SECONDS_MAX, waited
from simulation.ledger import LedgerServer
from simulation.tables import TablesServer
from simulation.trace import Trace

KILLED: Final = 0.7  # The share of lives that end by a kill; the others are asked to stop.
RESTART_SECONDS_MEAN: Final = 1.0
STOP_SECONDS_MAX: Final = 20.0
REST_SECONDS_MAX: Final = 300.0  # Until all that was seen is settled, and all holds are over.
SPEND_SECONDS_MAX: Final = 240.0  # Until all that can be spent is spent.
MIDNIGHT_AWAY: Final = timedelta(minutes=30)
VIEWS_AT_THE_END: Final = 4.0
WINDOW_OPENED: Final = 0.1  # How often somebody opens a new daily window after a change.

ProcessT = TypeVar("ProcessT", SellingProcess, BudgetWorkerProcess)


class MoneyPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to simulate; what is kept, and who keeps it, can be replaced by worse."""

    seed: int
    seconds: float
    views_per_second: float
    faults: MoneyFaultRates
    starts_at: datetime
    zone: str = "UTC"
    campaigns: int = 3
    has_payer: bool = True
    hold_seconds: int = 10
    delivery_processes: int = 2
    workers: int = 2
    auctioned: float = 0.0  # The share of requests that are for auctions.
    database: type[MoneyDatabase] = MoneyDatabase
    kinds: Kinds = make_kinds
    selling: type[SellingProcess] = SellingProcess


class MoneyOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    seed: int
    views: int
    offers: int
    auctions: int
    confirmed: int
    charges: int
    unbilled: int
    charged_micros: int
    changes: int
    commits: int
    faults: Mapping[str, int]
    violations: tuple[str, ...]
    steps: int
    digest: str


class MoneyWorld:
    """Everything of one run."""

    def __init__(self, plan: MoneyPlan) -> None:
        self._plan = plan
        self._trace = Trace()
        self._faults = MoneyFaults(plan.faults, seeded(plan.seed, "faults"), self._trace)
        self._chance = seeded(plan.seed, "traffic")
        self._clock = VirtualClock(plan.starts_at)
        ids = SeededIds(plan.seed, "ids")
        self._catalog = MoneyCatalog(
            ids,
            seeded(plan.seed, "people"),
            campaigns=plan.campaigns,
            zone=plan.zone,
            has_payer=plan.has_payer,
        )
        are_clocks_right = plan.faults.clock_seconds_between == float("inf")
        self.laws = MoneyLaws(
            self._catalog, hold_seconds=plan.hold_seconds, are_clocks_right=are_clocks_right
        )
        tables = TablesServer(self._faults, self._catalog.keys())
        self._servers = MoneyServers(
            database=plan.database(self._faults, self._catalog, tables, self.laws),
            valkey=ValkeyServer(self._faults),
            ledger=LedgerServer(self._faults, self._clock),
        )
        self._readers = MoneyReaders(
            Ledger(self._servers.ledger, tables),
            self.laws,
            self._catalog,
            self._faults,
            clock=self._clock,
            ids=ids,
            chance=seeded(plan.seed, "readers"),
            hold_seconds=plan.hold_seconds,
        )
        self._selling: dict[int, SellingProcess] = {}
        self._is_calm = asyncio.Event()  # No more faults: what was begun shall be finished.
        self._is_over = asyncio.Event()
        self._changes = 0

    async def run(self) -> None:
        """Live through the plan, let everything come to rest, spend what is left, and judge."""
        await self._live()
        await self._rest()
        await self._spend()
        self.laws.check_totals(self._servers.database.totals)

    # ------------------------------------------------------------ the three parts of a run

    async def _live(self) -> None:
        """Let readers and people come while everything goes wrong; then let what was begun be finished."""
        plan, servers = self._plan, self._servers
        async with asyncio.TaskGroup() as house:
            for number in range(plan.workers):
                house.create_task(self._keep_worker(number, house))
            for number in range(plan.delivery_processes):
                house.create_task(self._keep_selling(number, house))
            for outages in (servers.valkey, servers.database.outages, servers.ledger.outages):
                house.create_task(outages.come_and_go(self._is_calm))
            house.create_task(self._people())
            await self._traffic(plan.seconds, plan.views_per_second, auctioned=plan.auctioned)
            self._faults.end()
            self._is_calm.set()
            self._catalog.open_all()  # So that there are leases when it gets dark.
            self._tell_all()
            await asyncio.sleep(LATE_SECONDS_MAX)
            await self._until(self._is_charged, seconds_max=REST_SECONDS_MAX)
            self._is_over.set()
        self.laws.demand(self._is_charged(), "charges never caught up with the ledger")

    async def _rest(self) -> None:
        """Let the house be dark until all clocks have passed all that they had shown; then nothing is outstanding."""
        jump = timedelta(hours=self._plan.faults.clock_hours_max)
        await asyncio.sleep((jump + timedelta(seconds=self._plan.hold_seconds)).total_seconds())
        now = self._clock.now()
        ends_at = find_budget_day(now, self._plan.zone).ends_at
        if ends_at - now < MIDNIGHT_AWAY:
            await asyncio.sleep((ends_at - now + MIDNIGHT_AWAY).total_seconds())
        # Whoever takes over from the one that took leave of dead processes knows when their holds are over.
        await self._with_worker(lambda: asyncio.sleep(SESSION_SECONDS_MAX + 1))
        await self._with_worker(lambda: self._until(self._is_at_rest, seconds_max=REST_SECONDS_MAX))
        self.laws.check_rest()

    async def _spend(self) -> None:
        """Let all campaigns run, and all readers look at once: what can be spent is spent.

        Nothing is auctioned off by then: whoever is outbid could spend, and does not.
        """
        self._catalog.open_all()
        await self._with_worker(self._sell_out)
        for sentence in self.laws.unspent(self._clock.now()):
            self.laws.demand(is_so=False, otherwise=sentence)

    async def _sell_out(self) -> None:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as house:
            for number in range(self._plan.delivery_processes):
                process = self._start_selling(number, self._clock)
                house.create_task(process.run(stop))
            ends_at = asyncio.get_running_loop().time() + SPEND_SECONDS_MAX
            while asyncio.get_running_loop().time() < ends_at and self.laws.unspent(self._clock.now()):
                await self._traffic(2.0, VIEWS_AT_THE_END * self._plan.delivery_processes)
            stop.set()
        await self._until(lambda: self._is_charged() and self._is_told(), seconds_max=REST_SECONDS_MAX)

    async def _with_worker(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something while one worker runs."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as house:
            house.create_task(self._start_worker("worker-at-last", self._clock).run(stop))
            await work()
            stop.set()

    # ------------------------------------------------------------ readers and people

    async def _traffic(self, seconds: float, views_per_second: float, *, auctioned: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        async with asyncio.TaskGroup() as looking:
            while loop.time() < ends_at:
                await asyncio.sleep(self._chance.expovariate(views_per_second))
                process = self._selling.get(self._chance.randrange(self._plan.delivery_processes))
                if process is not None and process.host.is_alive:
                    is_auctioned = self._chance.random() < auctioned
                    self._readers.view(process, looking, is_auctioned=is_auctioned)

    async def _people(self) -> None:
        """Let budgets be changed now and then; processes hear of it by and by."""
        faults = self._faults
        while await waited(self._is_calm, faults.seconds(faults.money.change_seconds_between)):
            self._changes += 1
            self._catalog.change_something()
            self._tell_all()
            if self._chance.random() < WINDOW_OPENED:
                self._open_window()

    def _open_window(self) -> None:
        """Let an admin give a campaign its daily budget once more."""
        one = self._chance.choice(list(self._catalog.campaigns.values()))
        letter = encode_envelopes([(one.address, OpenWindow(reason="once more"))])
        self._servers.valkey.post(INBOX_CHANNEL, letter)

    def _tell_all(self) -> None:
        """Send notice of a change, which may get lost, and let delivery processes have it in their index some time."""
        faults = self._faults
        if self._servers.valkey.is_up:
            self._servers.valkey.post(NOTICE_CHANNEL, str(self._catalog.version).encode())
        for process in self._selling.values():
            seconds = faults.chance.uniform(0, faults.money.index_seconds_max)
            asyncio.get_running_loop().call_later(seconds, self._learn, process)

    def _learn(self, process: SellingProcess) -> None:
        if process.host.is_alive:
            process.learn(self._catalog.index())

    # ------------------------------------------------------------ processes

    async def _keep_worker(self, number: int, house: asyncio.TaskGroup) -> None:
        clock = self._a_wall_clock(house)
        await self._keep("worker", lambda: self._start_worker(f"worker-{number}", clock), house)

    async def _keep_selling(self, number: int, house: asyncio.TaskGroup) -> None:
        clock = self._a_wall_clock(house)
        await self._keep("delivery", lambda: self._start_selling(number, clock), house)

    def _start_worker(self, name: str, clock: Clock) -> BudgetWorkerProcess:
        return BudgetWorkerProcess(
            name,
            self._servers,
            clock=clock,
            chance=self._chance,
            kinds=self._plan.kinds,
            hold_seconds=self._plan.hold_seconds,
        )

    def _start_selling(self, number: int, clock: Clock) -> SellingProcess:
        process = self._plan.selling(f"delivery-{number}", self._servers, clock=clock, chance=self._chance)
        process.learn(self._catalog.index())
        self._selling[number] = process
        return process

    def _a_wall_clock(self, house: asyncio.TaskGroup) -> WallClock:
        clock = WallClock(self._clock, self._faults)
        house.create_task(clock.jump(self._is_calm))
        return clock

    async def _keep(self, name: str, start: Callable[[], ProcessT], house: asyncio.TaskGroup) -> None:
        """Run a process, and start it again whenever chance has ended it, from outside or at one of its calls."""
        faults = self._faults
        while not self._is_over.is_set():
            stop = asyncio.Event()
            process = start()
            running = house.create_task(process.run(stop))
            await self._lived(process)
            if faults.strikes(f"{name} killed", KILLED):
                process.host.kill()
            stop.set()
            if process.host.is_alive:
                await asyncio.wait([running], timeout=STOP_SECONDS_MAX)
                process.host.kill()  # It has ended, and holds nothing any more.
            await asyncio.sleep(faults.seconds(RESTART_SECONDS_MEAN))

    async def _lived(self, process: ProcessT) -> None:
        """Wait until a process dies by itself, its time is up, or all is over."""
        faults = self._faults
        seconds = faults.seconds(faults.rates.life_seconds_mean)
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

    # ------------------------------------------------------------ coming to rest

    def _is_charged(self) -> bool:
        return self._servers.database.charges_cursor == self._servers.ledger.last_id

    def _is_at_rest(self) -> bool:
        return self._is_told() and not any(state.outstanding for state in self.laws.campaigns)

    def _is_told(self) -> bool:
        """Tell whether advertisers have answered all reports; one that was given up is said again after minutes."""
        return not any(state.report for state in self.laws.campaigns)

    async def _until(self, is_so: Callable[[], bool], *, seconds_max: float) -> None:
        """Wait until something is so, but not for ever."""
        ends_at = asyncio.get_running_loop().time() + seconds_max
        while not is_so() and asyncio.get_running_loop().time() < ends_at:  # noqa: ASYNC110 - looking costs nothing here
            await asyncio.sleep(1)

    def outcome(self) -> MoneyOutcome:
        """Tell what came of it."""
        database = self._servers.database
        kinds = [row.kind.value for row in database.rows]
        return MoneyOutcome(
            seed=self._plan.seed,
            views=self._readers.views,
            offers=self._readers.offers,
            auctions=self._readers.auctions,
            confirmed=len(self.laws.confirmed),
            charges=kinds.count("charge"),
            unbilled=kinds.count("unbilled"),
            charged_micros=self.laws.charged,
            changes=self._changes,
            commits=sum(stored.version for stored in database.states.values()),
            faults=dict(sorted(self._faults.injected.items())),
            violations=tuple(self.laws.violations),
            steps=self._trace.steps,
            digest=self._trace.digest,
        )


def simulated(plan: MoneyPlan) -> MoneyOutcome:
    """Run a plan on virtual time."""
    worlds: list[MoneyWorld] = []

    async def run() -> None:
        worlds.append(MoneyWorld(plan))
        await worlds[0].run()

    try:
        virtual.run(plan.seed, run())
    except virtual.StuckError:
        worlds[0].laws.demand(is_so=False, otherwise="nobody moves any more, or somebody never stops to")
    return worlds[0].outcome()
