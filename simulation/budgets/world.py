"""Budgets on virtual time: workers, delivery processes, people, visitors, servers, and their faults."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final

from adloom.budgets.kinds import make_kinds
from adloom.budgets.messages import COUNTED_LEASE, OpenWindow
from adloom.budgets.transport.wire import INBOX_CHANNEL, SESSION_SECONDS_MAX, encode_envelopes
from adloom.core.clock import Clock
from adloom.core.ids import RequestId
from adloom.events.log.event import ChargedBy, Click, Impression, decode_event, encode_event
from adloom.events.ports import DecodedEntry
from adloom.resource.changes import NOTICE_CHANNEL
from adloom.schedule.budget_day import find_budget_day
from simulation.base_world import BaseWorld, Outcome, Plan, run_world
from simulation.budgets.database import BudgetDatabase
from simulation.budgets.laws import BudgetLaws, MadeOffer
from simulation.budgets.processes import BudgetServers, BudgetWorkerProcess, Kinds, SellingProcess, Sold
from simulation.campaigns import SimulatedCampaigns
from simulation.event_log import EventLogServer
from simulation.faults import LATE_SECONDS_MAX, wait_unless
from simulation.loop import make_random
from simulation.tables import TablesServer
from simulation.valkey import ValkeyServer

REST_SECONDS_MAX: Final = 300.0  # Until all that was seen is settled, and all holds are over.
SPEND_SECONDS_MAX: Final = 240.0  # Until all that can be spent is spent.
MIDNIGHT_AWAY: Final = timedelta(minutes=30)
VIEWS_AT_THE_END: Final = 4.0
SOON_SECONDS_MEAN: Final = 0.5
CLICKED_FIRST: Final = 0.2  # How often a click is reported before its impression.
WINDOW_OPENED: Final = 0.1  # How often an admin opens a new daily window after a change.


class BudgetPlan(Plan, frozen=True, kw_only=True):
    """What to simulate; the database, actors and processes can be replaced by broken ones."""

    zone: str = "UTC"
    campaigns: int = 3
    has_payer: bool = True
    hold_seconds: int = 10
    auctioned: float = 0.0  # The share of requests that are for auctions.
    capped: float = 0.0  # The share of campaigns with caps,
    learning: float = 0.0  # and of those whose bids a strategy multiplies.
    database: type[BudgetDatabase] = BudgetDatabase
    kinds: Kinds = make_kinds
    selling: type[SellingProcess] = SellingProcess


class BudgetWorld(BaseWorld[BudgetPlan, SellingProcess]):
    """Everything of one run."""

    def __init__(self, plan: BudgetPlan) -> None:
        super().__init__(plan)
        self._catalog = SimulatedCampaigns(
            self._ids,
            make_random(plan.seed, "people"),
            campaigns=plan.campaigns,
            zone=plan.zone,
            has_payer=plan.has_payer,
            capped=plan.capped,
            learning=plan.learning,
        )
        are_clocks_right = plan.faults.clock_seconds_between == float("inf")
        self.laws = BudgetLaws(
            self._catalog, hold_seconds=plan.hold_seconds, are_clocks_right=are_clocks_right
        )
        self.violations = self.laws.violations
        self.laws.caps.tables = tables = TablesServer(self._faults, self._catalog.list_keys())
        self._servers = BudgetServers(
            database=plan.database(self._faults, self._catalog, tables, self.laws),
            valkey=ValkeyServer(self._faults),
            log=EventLogServer(self._faults, self._clock),
        )
        self._campaign_ids = {one.key: one.id for one in self._catalog.campaigns.values()}
        self._looks = make_random(plan.seed, "readers")
        self._views = self._offers = self._auctions = 0  # Auctions are counted that were won.
        self._changes = 0

    async def run(self) -> None:
        """Follow the plan, let everything settle, spend what is left, and check the laws."""
        await self._run_all()
        await self._rest()
        await self._spend()
        self.laws.check_totals(self._servers.database.totals)

    # ------------------------------------------------------------ the three parts of a run

    async def _run_all(self) -> None:
        """Run traffic and changes under faults; then let what was begun finish."""
        plan, servers = self._plan, self._servers
        async with asyncio.TaskGroup() as tasks:
            self._begin(tasks, servers.valkey.outages, servers.database.outages, servers.log.outages)
            tasks.create_task(self._run_people())
            await self._send_traffic(plan.seconds, plan.views_per_second, auctioned=plan.auctioned)
            self._calm_down()
            self._catalog.open_all()  # So that there are leases when it gets dark.
            self._publish_change()
            await asyncio.sleep(LATE_SECONDS_MAX)
            await self._wait_until(self._is_charged, seconds_max=REST_SECONDS_MAX)
            self._is_over.set()
        self.laws.demand(self._is_charged(), "charges never caught up with the event log")

    async def _rest(self) -> None:
        """Wait until all clocks have passed all that they showed; then nothing is outstanding."""
        jump = timedelta(hours=self._plan.faults.clock_hours_max)
        await asyncio.sleep((jump + timedelta(seconds=self._plan.hold_seconds)).total_seconds())
        now = self._clock.now()
        ends_at = find_budget_day(now, self._plan.zone).ends_at
        if ends_at - now < MIDNIGHT_AWAY:
            await asyncio.sleep((ends_at - now + MIDNIGHT_AWAY).total_seconds())
        # The next leader knows when the holds of dead processes are over.
        await self._with_worker(lambda: asyncio.sleep(SESSION_SECONDS_MAX + 1))
        await self._with_worker(lambda: self._wait_until(self._is_at_rest, seconds_max=REST_SECONDS_MAX))
        self.laws.check_rest()

    async def _spend(self) -> None:
        """Let all campaigns run: what can be spent is spent.

        Nothing is auctioned by then: a campaign that is outbid could spend, and does not.
        """
        self._catalog.open_all()
        await self._with_worker(self._sell_out)
        for sentence in self.laws.list_unspent(self._clock.now()):
            self.laws.demand(is_so=False, otherwise=sentence)

    async def _sell_out(self) -> None:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._plan.delivery_processes):
                process = self._start_delivery(number, self._clock)
                tasks.create_task(process.run(stop))
            ends_at = asyncio.get_running_loop().time() + SPEND_SECONDS_MAX
            while asyncio.get_running_loop().time() < ends_at and self.laws.list_unspent(self._clock.now()):
                await self._send_traffic(2.0, VIEWS_AT_THE_END * self._plan.delivery_processes)
            stop.set()
        await self._wait_until(
            lambda: self._is_charged() and self._is_reported(), seconds_max=REST_SECONDS_MAX
        )

    async def _with_worker(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._start_worker("worker-at-last", self._clock).run(stop))
            await work()
            stop.set()

    # ------------------------------------------------------------ visitors and people

    async def _send_traffic(self, seconds: float, views_per_second: float, *, auctioned: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        async with asyncio.TaskGroup() as looking:
            while loop.time() < ends_at:
                await asyncio.sleep(self._chance.expovariate(views_per_second))
                process = self._pick_delivery()
                if process is not None:
                    self._view(process, looking, is_auctioned=self._chance.random() < auctioned)

    def _view(self, process: SellingProcess, looking: asyncio.TaskGroup, *, is_auctioned: bool) -> None:
        self._views += 1
        process.is_unheld = self._faults.strikes("sender beyond its bounds", self._faults.rates.unheld)
        sold = process.hold_auction() if is_auctioned else process.make_offers()
        request_id = RequestId(self._ids.make())
        for slot, one in enumerate(sold):
            self._note(one, (request_id, slot), session=process.session)
            if not self._faults.strikes("offer never seen", self._faults.rates.unseen):
                looking.create_task(self._see_offer(one, (request_id, slot)))

    def _note(self, sold: Sold, name: tuple[RequestId, int], *, session: int) -> None:
        one = sold.candidate
        made = MadeOffer(
            campaign_id=self._campaign_ids[one.campaign_key],
            lease=sold.lease & ~COUNTED_LEASE,
            is_leased=one.is_leased,
            amount=sold.cost,
            hold=sold.hold,
            charged_by=one.price.charged_by,
            at=self._clock.now(),
            session=session,
        )
        self._offers += 1
        if sold.win is not None:
            self._auctions += 1
            self.laws.check_auction(sold.win, sold.cost, sold.rivals)
        self._faults.trace.note("offered", b"%d %d %d" % (one.campaign_key, sold.lease, sold.second))
        self.laws.check_offer((name[0].int, name[1]), made)

    async def _see_offer(self, sold: Sold, name: tuple[RequestId, int]) -> None:
        """See an offer, click if that is what it is paid for, and report it, perhaps twice."""
        faults, chance = self._faults, self._looks
        by_click = sold.candidate.price.charged_by is ChargedBy.CLICK
        kinds: list[type[Impression | Click]] = [Impression, Click] if by_click else [Impression]
        if chance.random() < CLICKED_FIRST:
            kinds.reverse()
        if faults.strikes("offer seen late", faults.rates.seen_late):
            await asyncio.sleep(chance.uniform(0, 3 * self._plan.hold_seconds))
        events = [self._build_event(kind, sold, name) for kind in kinds]
        for event in events:
            await asyncio.sleep(chance.expovariate(1 / SOON_SECONDS_MEAN))
            if event is events[-1]:
                self.laws.confirmed.add((name[0].int, name[1]))
            self._report(event)
        if faults.strikes("report repeated", faults.rates.repeated):
            await asyncio.sleep(chance.expovariate(1))
            self._report(chance.choice(events))
        if faults.strikes("reported under another name", faults.rates.repeated):
            await asyncio.sleep(chance.expovariate(1))
            self._report(self._build_event(chance.choice(kinds), sold, name))

    def _report(self, event: Impression | Click) -> None:
        """Append an event, and apply it at once: how tables keep up is the matter of the other world."""
        log, tables, data = self._servers.log, self._servers.database.tables, encode_event(event)
        before = tables.cursor
        log.take(data)
        entry = DecodedEntry(log.last_id, decode_event(data))
        tables.fold([entry], after=before, cursor=log.last_id)
        if isinstance(event, Impression) and event.request_id is not None and event.slot is not None:
            self.laws.caps.record_seen((event.request_id.int, event.slot), self._clock.now())

    def _build_event(
        self, kind: type[Impression | Click], sold: Sold, name: tuple[RequestId, int]
    ) -> Impression | Click:
        """Report what a genuine token says of an offer."""
        one, now, catalog = sold.candidate, self._clock.now(), self._catalog
        campaign_id = self._campaign_ids[one.campaign_key]
        return kind(
            correlation_id=str(self._ids.make()),
            banner_id=catalog.campaigns[campaign_id].banner_id,
            placement_id=catalog.placement_id if sold.win is None else catalog.auction_placement_id,
            campaign_id=campaign_id,
            occurred_at=now,
            received_at=now,
            request_id=name[0],
            slot=name[1],
            offered_at=sold.second,
            lease=sold.lease,
            charge=sold.cost,
            charged_by=one.price.charged_by,
        )

    async def _run_people(self) -> None:
        faults = self._faults
        while await wait_unless(self._is_calm, faults.draw_seconds(faults.rates.change_seconds_between)):
            self._changes += 1
            self._catalog.change_something()
            self._publish_change()
            if self._chance.random() < WINDOW_OPENED:
                self._open_window()

    def _open_window(self) -> None:
        one = self._chance.choice(list(self._catalog.campaigns.values()))
        letter = encode_envelopes([(one.address, OpenWindow(reason="once more"))])
        self._servers.valkey.post(INBOX_CHANNEL, letter)

    def _publish_change(self) -> None:
        """Send a notice, which may get lost; delivery processes update their index some time later."""
        faults = self._faults
        if self._servers.valkey.outages.is_up:
            self._servers.valkey.post(NOTICE_CHANNEL, str(self._catalog.version).encode())
        for process in self._delivery.values():
            seconds = faults.chance.uniform(0, faults.rates.index_seconds_max)
            asyncio.get_running_loop().call_later(seconds, self._learn, process)

    def _learn(self, process: SellingProcess) -> None:
        if process.host.is_alive:
            process.learn(self._catalog.build_index())

    # ------------------------------------------------------------ processes

    def _start_worker(self, name: str, clock: Clock) -> BudgetWorkerProcess:
        return BudgetWorkerProcess(
            name,
            self._servers,
            clock=clock,
            chance=self._chance,
            kinds=self._plan.kinds,
            hold_seconds=self._plan.hold_seconds,
            has_strategies=self._plan.learning > 0,
        )

    def _start_delivery(self, number: int, clock: Clock) -> SellingProcess:
        process = self._plan.selling(f"delivery-{number}", self._servers, clock=clock, chance=self._chance)
        process.learn(self._catalog.build_index())
        self._delivery[number] = process
        return process

    # ------------------------------------------------------------ coming to rest

    def _is_charged(self) -> bool:
        return self._servers.database.charges_cursor == self._servers.log.last_id

    def _is_at_rest(self) -> bool:
        states = self.laws.campaigns
        return self._is_reported() and not any(
            state.outstanding or any(one.outstanding for one in state.offers.values()) for state in states
        )

    def _is_reported(self) -> bool:
        """Whether advertisers have answered all reports, and nothing waits for one."""
        return not any(state.report or state.waiting for state in self.laws.campaigns)

    def _count(self) -> dict[str, int]:
        database = self._servers.database
        kinds = [row.kind.value for row in database.rows]
        return {
            "page views": self._views,
            "offers made": self._offers,
            "of them auctioned": self._auctions,
            "multiplied bids": database.multiplied,
            "offers seen or clicked": len(self.laws.confirmed),
            "charges": kinds.count("charge"),
            "seen without a hold and not charged": kinds.count("unbilled"),
            "clicks over budget": kinds.count("over_budget"),
            "clicks over their cap": kinds.count("over_cap"),
            "offers of impression caps": self.laws.caps.offered_of_caps,
            "changes of budgets and campaigns": self._changes,
            "states kept": sum(stored.version for stored in database.states.values()),
        }


def simulate(plan: BudgetPlan) -> Outcome:
    return run_world(BudgetWorld, plan)
