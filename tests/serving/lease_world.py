"""Several processes with local leases and the real budget service, with messages lost, repeated and reordered, on virtual time."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any
from uuid import UUID

import msgspec

from adloom.budgets.addresses import CAMPAIGN, make_advertiser_address, make_campaign_address
from adloom.budgets.kinds import make_kinds
from adloom.budgets.messages import (
    AdvertiserRestored,
    CampaignExhausted,
    CampaignRestored,
    ChargeKind,
    ConfigureAdvertiser,
    ConfigureCampaign,
    Confirm,
    LeaseAnswer,
    MoneyKind,
    MoneyRow,
    OpenWindow,
    Recall,
    SessionOver,
    SpendUpdate,
)
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address, Publish, RecordRow, Tell, Wake
from adloom.schedule.pacing import PacingStrategy
from adloom.serving.index.rows import LeaseTerms
from adloom.serving.leases.local_leases import LocalLeases

ADVERTISER_ID = AdvertiserId(UUID(int=1))
PLACEMENT = 1
COST = Micros(1_000)
START = datetime(2026, 3, 28, 20, tzinfo=UTC)


class MessageFaults(msgspec.Struct, frozen=True, kw_only=True):
    """The shares of messages that are lost, repeated or delayed."""

    lost: float = 0.0
    repeated: float = 0.0
    delayed: float = 0.0


NO_FAULTS = MessageFaults()
MANY_FAULTS = MessageFaults(lost=0.05, repeated=0.05, delayed=0.03)


class Process:
    """A delivery process: its leases, and which of its campaigns have visitors."""

    def __init__(self, session: int) -> None:
        self.leases = LocalLeases(session)
        self.has_visitors = True


class LeaseWorld:
    """Budget actors of one advertiser and its campaigns, and processes that make offers out of their leases."""

    def __init__(  # noqa: PLR0913 - the options of a simulated world
        self,
        *,
        seed: int = 1,
        processes: int = 4,
        daily: Mapping[int, int | None],
        total: Mapping[int, int | None] | None = None,
        advertiser_daily: int | None = None,
        faults: MessageFaults = NO_FAULTS,
        timezone: str = "UTC",
        start: datetime = START,
        hold_seconds: int = 1_000_000,
        pacing: PacingStrategy = PacingStrategy.ACCELERATED,
    ) -> None:
        self.chance = Random(seed)  # noqa: S311 - seeded, and of a test
        self.now = start
        self._start = start
        self._faults = faults
        self._daily, self._total, self._advertiser_daily = dict(daily), dict(total or {}), advertiser_daily
        self._timezone, self._hold_seconds, self._pacing = timezone, hold_seconds, pacing
        self._queue: list[tuple[datetime, int, Address | int | None, msgspec.Struct]] = []
        self._order = count()
        self._sessions = count(1)
        self._version = 0
        self._kinds: dict[str, Any] = {kind.name: kind for kind in make_kinds()}
        self._states: dict[Address, Any] = {}
        self._timers: dict[Address, datetime] = {}
        self.keys = sorted(daily)
        self.ids = {key: CampaignId(UUID(int=100 + key)) for key in self.keys}
        self.terms = {key: LeaseTerms(self.ids[key], ADVERTISER_ID, COST) for key in self.keys}
        self.days: dict[tuple[int, int], datetime] = {}  # By campaign and lease, when its day ends.
        self.given: Counter[tuple[int, datetime]] = Counter()
        self.given_total: Counter[int] = Counter()
        self.rows: list[MoneyRow] = []
        self.exchanges = 0
        self.processes: list[Process] = []
        self.configure()
        for _ in range(processes):
            self.start()

    # ------------------------------------------------------------ what tests do

    @property
    def at(self) -> float:
        """Monotonic time in seconds since the start."""
        return (self.now - self._start).total_seconds()

    @property
    def second(self) -> int:
        return int(self.now.timestamp())

    def start(self) -> Process:
        process = Process(next(self._sessions))
        process.leases.update({PLACEMENT: self.terms}, at=self.at)
        self.processes.append(process)
        return process

    def kill(self, process: Process) -> None:
        """End a process without a message; ten seconds later its session is closed."""
        self.processes.remove(process)
        self.end_session(process.leases.session, seconds=10)

    def end_session(self, session: int, *, seconds: float = 0) -> None:
        message = SessionOver(session=session, second=self.second)
        for key in self.keys:
            self._post(self._campaign(key), message, after=timedelta(seconds=seconds))

    def configure(
        self, *, daily: Mapping[int, int | None] | None = None, advertiser_daily: int | None = None
    ) -> None:
        self._version += 1
        self._daily |= daily or {}
        self._advertiser_daily = advertiser_daily or self._advertiser_daily
        advertiser = ConfigureAdvertiser(
            version=self._version,
            advertiser_id=ADVERTISER_ID,
            is_active=True,
            daily_budget=_micros(self._advertiser_daily),
            timezone=self._timezone,
        )
        self._post(make_advertiser_address(ADVERTISER_ID), advertiser)
        for key in self.keys:
            campaign = ConfigureCampaign(
                version=self._version,
                campaign_id=self.ids[key],
                advertiser_id=ADVERTISER_ID,
                is_running=True,
                daily_budget=_micros(self._daily[key]),
                total_budget=_micros(self._total.get(key)),
                pacing=self._pacing,
                timezone=self._timezone,
                hold_seconds=self._hold_seconds,
                is_allotted=self._advertiser_daily is not None,
            )
            self._post(self._campaign(key), campaign)

    def open_window(self, key: int) -> None:
        self._post(self._campaign(key), OpenWindow(reason="a test"))

    def offer(self, process: Process, key: int, *, confirmed_after: float | None = None) -> bool:
        """Make an offer if the process may; confirm it after some seconds, or never."""
        is_shown = not any(key in keys for keys in process.leases.registry.list_excluded().values())
        lease = process.leases.reserve(key, COST, self.second) if is_shown else None
        if lease is None:
            return False
        self.given[key, self.days[key, lease]] += COST
        self.given_total[key] += COST
        if confirmed_after is not None:
            confirm = Confirm(
                request_id=RequestId(UUID(int=1_000_000 + self.given_total.total())),
                slot=0,
                kind=ChargeKind.IMPRESSION,
                lease=lease,
                second=self.second,
                amount=COST,
                banner_id=BannerId(UUID(int=1)),
                placement_id=PlacementId(UUID(int=1)),
                occurred_at=self.now,
            )
            self._post(self._campaign(key), confirm, after=timedelta(seconds=confirmed_after))
        return True

    # ------------------------------------------------------------ time

    def run(self, seconds: float, *, step_seconds: float = 0.02) -> Iterator[None]:
        """Advance time; the caller acts at every step of the iteration."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            self._deliver_until(self.now)
            for process in self.processes:
                self._send_reports(process)
            yield
            self.now += timedelta(seconds=step_seconds)

    def wait(self, seconds: float) -> None:
        for _ in self.run(seconds):
            pass

    def _send_reports(self, process: Process) -> None:
        leases = process.leases
        if leases.is_void:
            self.end_session(leases.session)
            leases.start_session(next(self._sessions), at=self.at)
        reports = leases.collect_reports(
            second=self.second, at=self.at, most=500, is_wanted=lambda _: process.has_visitors
        )
        for terms, usage in reports:
            self.exchanges += 1
            self._send(make_campaign_address(terms.campaign_id, terms.advertiser_id), usage)

    # ------------------------------------------------------------ messages

    def _send(self, to: Address | int | None, message: msgspec.Struct) -> None:
        """Post a message that may be lost, repeated or overtaken."""
        for _ in range(1 + (self.chance.random() < self._faults.repeated)):
            if self.chance.random() < self._faults.lost:
                continue
            seconds = self.chance.expovariate(200)
            if self.chance.random() < self._faults.delayed:
                seconds = self.chance.uniform(0, 3)
            self._post(to, message, after=timedelta(seconds=seconds))

    def _post(
        self, to: Address | int | None, message: msgspec.Struct, *, after: timedelta = timedelta()
    ) -> None:
        heappush(self._queue, (self.now + after, next(self._order), to, message))

    def _deliver_until(self, until: datetime) -> None:
        while True:
            timer = min(((at, address) for address, at in self._timers.items()), default=None)
            if self._queue and self._queue[0][0] <= until and (not timer or self._queue[0][0] <= timer[0]):
                at, _, to, message = heappop(self._queue)
                self.now = max(self.now, at)
                if isinstance(to, Address):
                    self._step(to, message)
                else:
                    self._receive(to, message)
            elif timer and timer[0] <= until:
                self.now = max(self.now, timer[0])
                del self._timers[timer[1]]
                self._step(timer[1], self._kinds[timer[1].kind].on_waking)
            else:
                break
        self.now = max(self.now, until)

    def _step(self, address: Address, message: msgspec.Struct) -> None:
        kind = self._kinds[address.kind]
        state = self._states.get(address)
        if state is None:
            state = kind.new(address.key, self.now)
        state, effects = kind.step(state, message, self.now, self.chance)
        self._states[address] = state
        for effect in effects:
            match effect:
                case Tell(to=to, message=content):
                    self._send(to, content)
                case Publish(topic=topic, message=update):
                    self._send(int(topic.partition(":")[2]) if ":" in topic else None, update)
                case Wake(at=at):
                    self._timers.pop(address, None)
                    if at is not None:
                        self._timers[address] = at
                case RecordRow(row=MoneyRow() as row):
                    self.rows.append(row)
                case _:
                    pass

    def _receive(self, session: int | None, update: msgspec.Struct) -> None:
        for process in self.processes:
            leases = process.leases
            if session is not None and session != leases.session:
                continue
            match update:
                case LeaseAnswer():
                    self.days[self._key(update.campaign_id), update.lease] = self.days.get(
                        (self._key(update.campaign_id), update.lease), update.ends_at
                    )
                    leases.on_answer(update, second=self.second, at=self.at)
                case Recall():
                    leases.on_recall(update, second=self.second, at=self.at)
                case CampaignRestored():
                    leases.on_campaign_restored(update.campaign_id, at=self.at)
                case CampaignExhausted():
                    leases.on_campaign_exhausted(update.campaign_id, at=self.at)
                case AdvertiserRestored():
                    leases.on_advertiser_restored(update.advertiser_id, at=self.at)
                case SpendUpdate():
                    leases.on_spend_update(update.campaign_id, at=self.at)
                case _:
                    pass

    def _campaign(self, key: int) -> Address:
        return make_campaign_address(self.ids[key], ADVERTISER_ID)

    def _key(self, campaign_id: CampaignId) -> int:
        return campaign_id.int - 100

    # ------------------------------------------------------------ the law: no overspend

    def check(self) -> None:
        """Law 2: neither offers (as long as no hold has expired) nor charges exceed a budget."""
        if self._hold_seconds > 100_000:
            self._check_offers()
        charged: dict[int, Counter[date]] = defaultdict(Counter)
        for row in self.rows:
            if row.kind is MoneyKind.CHARGE:
                charged[self._key(row.campaign_id)][row.day] += row.amount
        for key, by_day in charged.items():
            assert _is_within(max(by_day.values()), self._daily[key]), (
                "charges stay within a campaign's daily budget"
            )
            assert _is_within(by_day.total(), self._total.get(key)), (
                "charges stay within a campaign's total budget"
            )
        by_day = sum(charged.values(), Counter[date]())
        assert _is_within(max(by_day.values(), default=0), self._advertiser_daily), (
            "charges stay within the advertiser's daily budget"
        )

    def _check_offers(self) -> None:
        by_day: Counter[datetime] = Counter()
        for (key, day), amount in self.given.items():
            assert _is_within(amount, self._daily[key]), "offers stay within a campaign's daily budget"
            by_day[day] += amount
        for key, amount in self.given_total.items():
            assert _is_within(amount, self._total.get(key)), "offers stay within a campaign's total budget"
        most = max(by_day.values(), default=0)
        assert _is_within(most, self._advertiser_daily), "offers stay within the advertiser's daily budget"

    def leased(self) -> int:
        """Return the sum that budget actors count as leased to processes."""
        return sum(state.leased for address, state in self._states.items() if address.kind == CAMPAIGN)


def _micros(offers: int | None) -> Micros | None:
    return None if offers is None else Micros(offers * COST)


def _is_within(amount: int, offers: int | None) -> bool:
    return offers is None or amount <= offers * COST
