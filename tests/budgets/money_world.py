"""Days of budgets in seconds of virtual time: budget actors, delivery processes, visitors, and faults between them."""

import heapq
import itertools
import random
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.budgets.addresses import CAMPAIGN, make_advertiser_address, make_campaign_address
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import (
    ChargeKind,
    ConfigureAdvertiser,
    ConfigureCampaign,
    Confirm,
    LeaseAnswer,
    MoneyKind,
    OpenWindow,
    Recall,
    Refund,
    RefundPart,
    SessionOver,
)
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address
from adloom.schedule.budget_day import find_budget_day
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.budget_actors import ActorHost
from tests.budgets.money_laws import MoneyLaws
from tests.budgets.simulated_process import Offer, SimulatedProcess

ADVERTISER_ID: Final = AdvertiserId(UUID(int=1))
TICK: Final = timedelta(milliseconds=250)
SESSION_SECONDS_MAX: Final = 10
CONFIRM_AGAIN: Final = timedelta(seconds=3)
REFUND_EVERY: Final = timedelta(seconds=10)
# Two minutes before midnight, on days with clock changes and on ordinary days.
STARTS: Final = (
    ("UTC", datetime(2026, 11, 15, 23, 58, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 28, 22, 58, tzinfo=UTC)),  # 23 hours follow.
    ("America/New_York", datetime(2026, 11, 1, 3, 58, tzinfo=UTC)),  # 25 hours follow.
    ("America/Sao_Paulo", datetime(2018, 11, 4, 2, 58, tzinfo=UTC)),  # There is no midnight.
    ("America/St_Johns", datetime(2006, 10, 29, 2, 28, tzinfo=UTC)),  # At 00:01 it is 23:01 again.
    ("Pacific/Apia", datetime(2011, 12, 30, 9, 58, tzinfo=UTC)),  # The zone skips a day.
    ("Asia/Kathmandu", datetime(2026, 11, 15, 18, 13, tzinfo=UTC)),
)


class Faults(NamedTuple):
    """The rate of each fault, per message or per tick."""

    lost: float = 0.0
    repeated: float = 0.0
    delayed: float = 0.0
    crash: float = 0.0
    kill: float = 0.0
    freeze: float = 0.0
    clock_jump: float = 0.0
    change: float = 0.0
    reset: float = 0.0
    refund: float = 0.0
    never_confirmed: float = 0.0
    late: float = 0.0


NO_FAULTS: Final = Faults()
MANY_FAULTS: Final = Faults(
    lost=0.05,
    repeated=0.05,
    delayed=0.03,
    crash=0.01,
    kill=0.004,
    freeze=0.004,
    clock_jump=0.004,
    change=0.02,
    reset=0.003,
    refund=0.02,
    never_confirmed=0.3,
    late=0.1,
)


class OpenOffer(NamedTuple):
    """An offer that will be confirmed, and whether its process had a correct clock."""

    confirm: Confirm
    address: Address
    session: int
    is_regular: bool


class MoneyWorld:
    """A world of budgets under seeded faults."""

    def __init__(
        self, seed: int, *, faults: Faults, campaigns: int, processes: int, zone: int | None = None
    ) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - seeded, so that runs repeat
        self.faults = faults
        self.laws = MoneyLaws()
        self.zone, self.now = STARTS[self.chance.randrange(len(STARTS)) if zone is None else zone]
        self.host = ActorHost(
            self.chance,
            watch=self.laws.watch,
            tell=self._send,
            publish=self._route_update,
            crash_rate=faults.crash,
        )
        self.hold_seconds = self.chance.choice([3, 10, 60])
        self.costs = {
            CampaignId(UUID(int=100 + number)): Micros(self.chance.choice([1000, 700, 300]))
            for number in range(campaigns)
        }
        self.configs: dict[CampaignId, ConfigureCampaign] = {}
        self.advertiser: ConfigureAdvertiser | None = None
        self.processes: dict[int, SimulatedProcess] = {}
        self.frozen: dict[int, datetime] = {}  # Frozen until then.
        self.gone: dict[int, datetime] = {}  # Silent since then.
        self.unconfirmed: dict[tuple[UUID, int], OpenOffer] = {}
        self.offers = 0
        self.refused = 0
        self.refunded_at = self.now
        self._crashes = 0
        self._queue: list[tuple[datetime, int, Address | int, msgspec.Struct]] = []
        self._numbers = itertools.count(1)
        self._versions = itertools.count(1)
        for _ in range(processes):
            self.start_process()

    # ------------------------------------------------------------ what tests do

    def configure(self, campaign_id: CampaignId, **fields: object) -> None:
        """Change fields of a campaign's configuration."""
        known = self.configs.get(campaign_id) or ConfigureCampaign(
            version=0,
            campaign_id=campaign_id,
            advertiser_id=ADVERTISER_ID,
            is_running=True,
            daily_budget=None,
            total_budget=None,
            pacing=PacingStrategy.ACCELERATED,
            timezone=self.zone,
            hold_seconds=self.hold_seconds,
            is_allotted=False,
        )
        config = msgspec.structs.replace(known, version=next(self._versions), **fields)
        self.configs[campaign_id] = config
        self._send(self.address(campaign_id), config, is_lossy=False)

    def configure_advertiser(self, daily_budget: int | None) -> None:
        """Set the advertiser's budget, and configure all its campaigns."""
        budget = None if daily_budget is None else Micros(daily_budget)
        self.advertiser = ConfigureAdvertiser(
            version=next(self._versions),
            advertiser_id=ADVERTISER_ID,
            is_active=True,
            daily_budget=budget,
            timezone=self.zone,
        )
        self._send(make_advertiser_address(ADVERTISER_ID), self.advertiser, is_lossy=False)
        for campaign_id in self.costs:
            self.configure(campaign_id, is_allotted=budget is not None)

    def start_process(self) -> SimulatedProcess:
        """Start a delivery process."""
        process = SimulatedProcess(next(self._numbers), self.costs)
        self.processes[process.session] = process
        return process

    def end_process(self, session: int) -> None:
        """Kill a delivery process, or end its session."""
        del self.processes[session]
        self.frozen.pop(session, None)
        self.gone[session] = self.now

    def address(self, campaign_id: CampaignId) -> Address:
        return make_campaign_address(campaign_id, ADVERTISER_ID)

    def campaign(self, campaign_id: CampaignId) -> CampaignState:
        state = self.host.state(self.address(campaign_id), self.now)
        assert isinstance(state, CampaignState)
        return state

    # ------------------------------------------------------------ time

    def run(self, seconds: float, *, visitors: int = 3) -> None:
        """Let visitors come for a while: at most `visitors` per process and tick."""
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:
            self.pass_time(TICK)
            self._inject_faults()
            self.laws.check_processes(self.processes.values(), self._stored())
            for process in list(self.processes.values()):
                if process.session not in self.frozen:
                    self._serve(process, visitors)

    def pass_time(self, time: timedelta) -> None:
        """Deliver the messages and run the timers that are due."""
        until = self.now + time
        while True:
            alarm = self.host.next_alarm()
            message_at = self._queue[0][0] if self._queue else until
            if alarm is not None and alarm[0] <= min(until, message_at):
                self.now = max(self.now, alarm[0])
                self.host.wake(alarm[1], self.now)
            elif self._queue and message_at <= until:
                self.now = max(self.now, message_at)
                self._deliver()
            else:
                break
            self.laws.check(self.host)
            self._configure_again()
        self.now = until

    def close(self) -> None:
        """Let all processes return their leases, some by a report and some by being killed; wait until all is settled."""
        self.faults = NO_FAULTS
        self.host.crash_rate = 0.0
        self.frozen.clear()
        for process in list(self.processes.values()):
            process.skew = timedelta()
            if process.is_void or self.chance.random() < 0.5:
                self.end_process(process.session)
        for _ in range(400):
            self.pass_time(TICK)
            for process in list(self.processes.values()):
                for campaign_id in process.unfinished():
                    self._report(process, campaign_id, 0)
                if process.is_void:
                    self.end_process(process.session)
        for session in list(self.processes):
            assert not list(self.processes[session].unfinished()), "every return is answered"
            self.end_process(session)
        self._end_sessions()
        self.pass_time(timedelta(seconds=SESSION_SECONDS_MAX + 2))
        self._end_sessions()
        # Long enough for the last confirm, and for the last hold of a process with a wrong clock.
        self.pass_time(timedelta(seconds=5 * self.hold_seconds + 20))

    def start_again(self) -> None:
        """Start new processes, far from midnight, with all campaigns running and accelerated."""
        ends_at = find_budget_day(self.now, self.zone).ends_at
        if ends_at - self.now < timedelta(hours=1):
            self.pass_time(timedelta(hours=1))
        for campaign_id in self.costs:
            self.configure(campaign_id, is_running=True, pacing=PacingStrategy.ACCELERATED)
        for _ in range(self.chance.choice([1, 2, 4])):
            self.start_process()

    # ------------------------------------------------------------ what happens in a tick

    def _serve(self, process: SimulatedProcess, visitors: int) -> None:
        if process.is_void:
            self.end_process(process.session)
            self.start_process()
            return
        for _ in range(self.chance.randrange(visitors + 1)):
            campaign_id = self.chance.choice(list(self.costs))
            offer = process.make_offer(campaign_id, self.now)
            if offer is None:
                self.refused += 1
            else:
                self._schedule_confirm(process, offer)
        for campaign_id, held in process.leases.items():
            is_due = held.is_needed or held.unreported or held.is_recalled or self.chance.random() < 0.2
            if is_due if held.pending is None else self.chance.random() < 0.3:
                self._report(process, campaign_id, self.chance.choice([1, 3, 10]))

    def _report(self, process: SimulatedProcess, campaign_id: CampaignId, want_offers: int) -> None:
        self._send(self.address(campaign_id), process.report(campaign_id, want_offers, self.now))

    def _schedule_confirm(self, process: SimulatedProcess, offer: Offer) -> None:
        self.offers += 1
        if self.chance.random() < self.faults.never_confirmed:
            return
        is_late = self.chance.random() < self.faults.late
        seconds = self.chance.uniform(0, 3 * self.hold_seconds) if is_late else self.chance.expovariate(1.0)
        confirm = Confirm(
            request_id=RequestId(UUID(int=10**9 + self.offers)),
            slot=0,
            kind=ChargeKind.IMPRESSION,
            lease=offer.lease,
            second=offer.second,
            amount=offer.amount,
            banner_id=BannerId(UUID(int=7)),
            placement_id=PlacementId(UUID(int=8)),
            occurred_at=self.now,
        )
        address = self.address(offer.campaign_id)
        self.unconfirmed[confirm.request_id, 0] = OpenOffer(
            confirm, address, process.session, not process.skew
        )
        self._post(timedelta(seconds=seconds), address, confirm)

    def _inject_faults(self) -> None:
        """Inject random faults."""
        self._end_sessions()
        if self.chance.random() < self.faults.crash:
            self.host.crash()
        for process in list(self.processes.values()):
            self._disturb(process)
        if self.chance.random() < self.faults.change:
            self._change()
        if self.chance.random() < self.faults.reset:
            campaign_id = self.chance.choice(list(self.costs))
            self._send(self.address(campaign_id), OpenWindow(reason="again"), is_lossy=False)
        if self.chance.random() < self.faults.refund:
            self._refund(self.chance.choice(list(self.costs)))

    def _refund(self, campaign_id: CampaignId) -> None:
        """Give back some of what was charged."""
        left: dict[tuple[date, int], int] = {}
        for row in self.host.rows:
            if row.campaign_id == campaign_id and row.kind in {MoneyKind.CHARGE, MoneyKind.REFUND}:
                sign = 1 if row.kind is MoneyKind.CHARGE else -1
                left[row.day, row.window] = left.get((row.day, row.window), 0) + sign * row.amount
        parts = [
            RefundPart(
                day=day,
                day_spent=Micros(self.host.days[CAMPAIGN, campaign_id, day]),
                window=window,
                hour=0,
                banner_id=BannerId(UUID(int=7)),
                placement_id=PlacementId(UUID(int=8)),
                amount=Micros(self.chance.randint(1, amount)),
            )
            for (day, window), amount in left.items()
            if amount > 0 and self.chance.random() < 0.5
        ]
        # One at a time, as control asks for them: two could give back the same charges.
        is_alone = self.now - self.refunded_at > REFUND_EVERY
        if parts and is_alone:
            self.refunded_at = self.now
            refund_id = RequestId(UUID(int=self.chance.getrandbits(127)))
            self._send(self.address(campaign_id), Refund(refund_id=refund_id, parts=tuple(parts)))

    def _disturb(self, process: SimulatedProcess) -> None:
        if self.frozen.get(process.session, self.now) > self.now:
            return
        self.frozen.pop(process.session, None)
        if self.chance.random() < self.faults.kill:
            self.end_process(process.session)
            self.start_process()
        elif self.chance.random() < self.faults.freeze:
            seconds = self.chance.choice([1, 8, 15, 2 * self.hold_seconds])
            self.frozen[process.session] = self.now + timedelta(seconds=seconds)
            if seconds > SESSION_SECONDS_MAX:
                self.gone[process.session] = self.now
        elif self.chance.random() < self.faults.clock_jump:
            jump = self.chance.choice([-3600, -40, -2, 0, 0, 2, 40, 3600])
            process.skew = timedelta(seconds=jump)

    def _configure_again(self) -> None:
        """Send all configurations again after a crash of the host."""
        if self.host.crashes > self._crashes:
            self._crashes = self.host.crashes
            for config in self.configs.values():
                self._send(self.address(config.campaign_id), config, is_lossy=False)
            if self.advertiser is not None:
                self._send(make_advertiser_address(ADVERTISER_ID), self.advertiser, is_lossy=False)

    def _end_sessions(self) -> None:
        """End the sessions of silent processes, until every campaign has stored that."""
        for session, since in list(self.gone.items()):
            if (self.now - since).total_seconds() < SESSION_SECONDS_MAX:
                continue
            missing = [address for address, state in self._campaigns() if session not in state.sessions_over]
            for address in missing:
                over = SessionOver(session=session, second=int(self.now.timestamp()))
                self._send(address, over, is_lossy=False)
            if not missing:
                del self.gone[session]

    def _stored(self) -> dict[CampaignId, CampaignState]:
        return {state.config.campaign_id: state for _, state in self._campaigns() if state.config is not None}

    def _campaigns(self) -> list[tuple[Address, CampaignState]]:
        return [
            (address, stored.state)
            for address, stored in self.host.stored.items()
            if isinstance(stored.state, CampaignState)
        ]

    def _change(self) -> None:
        """Change a budget or the pacing of a campaign, pause it, or resume it."""
        campaign_id = self.chance.choice(list(self.costs))
        match self.chance.randrange(5):
            case 0:
                self.configure(campaign_id, daily_budget=self._budget())
            case 1:
                self.configure(campaign_id, total_budget=self._budget(4))
            case 2:
                self.configure(campaign_id, is_running=not self.configs[campaign_id].is_running)
            case 3 if self.advertiser is not None:
                self.configure_advertiser(self._budget(2))
            case _:
                pacing = self.chance.choice(list(PacingStrategy))
                self.configure(campaign_id, pacing=pacing)

    def _budget(self, times: int = 1) -> Micros:
        return Micros(self.chance.choice([0, 1, 2, 5, 10, 40, 100]) * 1000 * times)

    # ------------------------------------------------------------ messages

    def _route_update(self, topic: str, message: msgspec.Struct) -> None:
        kind, _, session = topic.partition(":")
        if kind == "session":
            self._send(int(session), message)

    def _send(self, to: Address | int, message: msgspec.Struct, *, is_lossy: bool = True) -> None:
        if is_lossy and self.chance.random() < self.faults.lost:
            return
        copies = 2 if is_lossy and self.chance.random() < self.faults.repeated else 1
        for _ in range(copies):
            is_delayed = is_lossy and self.chance.random() < self.faults.delayed
            seconds = self.chance.uniform(0, 20) if is_delayed else self.chance.expovariate(100.0)
            self._post(timedelta(seconds=seconds), to, message)

    def _post(self, delay: timedelta, to: Address | int, message: msgspec.Struct) -> None:
        heapq.heappush(self._queue, (self.now + delay, next(self._numbers), to, message))

    def _deliver(self) -> None:
        """Deliver a batch: what comes next to the budget actors, or one message to a process."""
        batch: list[tuple[Address, msgspec.Struct]] = []
        size = self.chance.choice([1, 1, 3, 10])
        while self._queue and self._queue[0][0] <= self.now and len(batch) < size:
            _, _, to, message = heapq.heappop(self._queue)
            if isinstance(to, int):
                self._receive(to, message)
            elif not isinstance(message, Confirm) or self._is_due(message):
                batch.append((to, message))
        if batch:
            self.host.run(batch, self.now)

    def _receive(self, session: int, message: msgspec.Struct) -> None:
        process = self.processes.get(session)
        if process is None:
            return
        resumes_at = self.frozen.get(session, self.now)
        if resumes_at > self.now:  # It receives the message when it runs again.
            self._post(resumes_at - self.now, session, message)
        elif isinstance(message, LeaseAnswer | Recall):
            process.receive(message)

    def _is_due(self, confirm: Confirm) -> bool:
        """Return whether a confirm is not recorded yet; it is sent until it is, and sometimes once more."""
        key = (confirm.request_id, confirm.slot)
        if key in self.host.offers:
            given = self.unconfirmed.pop(key, None)
            if given is not None:
                self._check_charged(given)
            return False
        given = self.unconfirmed[key]
        self._post(CONFIRM_AGAIN, given.address, confirm)
        return True

    def _check_charged(self, given: OpenOffer) -> None:
        """Check that an offer that was confirmed during its hold was charged."""
        confirm = given.confirm
        row = next(row for row in reversed(self.host.rows) if row.request_id == confirm.request_id)
        is_in_time = row.at.timestamp() < confirm.second + self.hold_seconds
        if is_in_time and given.is_regular and given.session in self.processes:
            assert row.kind is MoneyKind.CHARGE, "a hold that is confirmed in time is charged"
