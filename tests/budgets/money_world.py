"""Days of budgets in seconds: budget actors, delivery processes, readers and everything that can go wrong between them."""

import heapq
import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.budgets.addresses import advertiser_address, campaign_address
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
    SessionOver,
)
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address
from adloom.schedule.budget_day import find_budget_day
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.budget_actors import BrainHouse
from tests.budgets.money_laws import MoneyLaws
from tests.budgets.shop import Offer, Shop

ADVERTISER_ID: Final = AdvertiserId(UUID(int=1))
TICK: Final = timedelta(milliseconds=250)
SESSION_SECONDS_MAX: Final = 10
CONFIRM_AGAIN: Final = timedelta(seconds=3)
# Evenings before something happens to clocks, and ordinary ones.
EVENINGS: Final = (
    ("UTC", datetime(2026, 11, 15, 23, 58, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 28, 22, 58, tzinfo=UTC)),  # 23 hours follow.
    ("America/New_York", datetime(2026, 11, 1, 3, 58, tzinfo=UTC)),  # 25 hours follow.
    ("America/Sao_Paulo", datetime(2018, 11, 4, 2, 58, tzinfo=UTC)),  # There is no midnight.
    ("America/St_Johns", datetime(2006, 10, 29, 2, 28, tzinfo=UTC)),  # At 00:01 it is 23:01 again.
    ("Pacific/Apia", datetime(2011, 12, 30, 9, 58, tzinfo=UTC)),  # A whole day is left out.
    ("Asia/Kathmandu", datetime(2026, 11, 15, 18, 13, tzinfo=UTC)),
)


class Faults(NamedTuple):
    """How often what goes wrong: of messages, of ticks."""

    lost: float = 0.0
    repeated: float = 0.0
    delayed: float = 0.0
    crash: float = 0.0
    kill: float = 0.0
    freeze: float = 0.0
    clock_jump: float = 0.0
    change: float = 0.0
    reset: float = 0.0
    never_confirmed: float = 0.0
    late: float = 0.0


NONE: Final = Faults()
MANY: Final = Faults(
    lost=0.05,
    repeated=0.05,
    delayed=0.03,
    crash=0.01,
    kill=0.004,
    freeze=0.004,
    clock_jump=0.004,
    change=0.02,
    reset=0.003,
    never_confirmed=0.3,
    late=0.1,
)


class Given(NamedTuple):
    """An offer that its reader will confirm, and whether nothing can have gone wrong with its hold."""

    confirm: Confirm
    address: Address
    session: int
    is_regular: bool


class MoneyWorld:
    """One seed."""

    def __init__(
        self, seed: int, *, faults: Faults, campaigns: int, shops: int, zone: int | None = None
    ) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - the same seed, the same run
        self.faults = faults
        self.laws = MoneyLaws()
        self.zone, self.now = EVENINGS[self.chance.randrange(len(EVENINGS)) if zone is None else zone]
        self.house = BrainHouse(
            self.chance,
            watch=self.laws.watch,
            tell=self._send,
            publish=self._published,
            crash_rate=faults.crash,
        )
        self.hold_seconds = self.chance.choice([3, 10, 60])
        self.costs = {
            CampaignId(UUID(int=100 + number)): Micros(self.chance.choice([1000, 700, 300]))
            for number in range(campaigns)
        }
        self.configs: dict[CampaignId, ConfigureCampaign] = {}
        self.advertiser: ConfigureAdvertiser | None = None
        self.shops: dict[int, Shop] = {}
        self.asleep: dict[int, datetime] = {}  # Frozen until then.
        self.gone: dict[int, datetime] = {}  # Not heard of since then.
        self.unconfirmed: dict[tuple[UUID, int], Given] = {}
        self.offers = 0
        self.refused = 0
        self._crashes = 0
        self._mail: list[tuple[datetime, int, Address | int, msgspec.Struct]] = []
        self._numbers = itertools.count(1)
        self._versions = itertools.count(1)
        for _ in range(shops):
            self.open_shop()

    # ------------------------------------------------------------ what people do

    def configure(self, campaign_id: CampaignId, **fields: object) -> None:
        """Set a campaign's terms; what is not named stays as it was."""
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
        """Set the advertiser's terms, and tell all its campaigns."""
        budget = None if daily_budget is None else Micros(daily_budget)
        self.advertiser = ConfigureAdvertiser(
            version=next(self._versions),
            advertiser_id=ADVERTISER_ID,
            is_active=True,
            daily_budget=budget,
            timezone=self.zone,
        )
        self._send(advertiser_address(ADVERTISER_ID), self.advertiser, is_lossy=False)
        for campaign_id in self.costs:
            self.configure(campaign_id, is_allotted=budget is not None)

    def open_shop(self) -> Shop:
        """Start a delivery process."""
        shop = Shop(next(self._numbers), self.costs)
        self.shops[shop.session] = shop
        return shop

    def close_shop(self, session: int) -> None:
        """Kill a delivery process, or end its session."""
        del self.shops[session]
        self.asleep.pop(session, None)
        self.gone[session] = self.now

    def address(self, campaign_id: CampaignId) -> Address:
        return campaign_address(campaign_id, ADVERTISER_ID)

    def campaign(self, campaign_id: CampaignId) -> CampaignState:
        state = self.house.state(self.address(campaign_id), self.now)
        assert isinstance(state, CampaignState)
        return state

    # ------------------------------------------------------------ time

    def run(self, seconds: float, *, readers: int = 3) -> None:
        """Let readers come for a while: so many a tick at most."""
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:
            self.pass_time(TICK)
            self._go_wrong()
            self.laws.check_shops(self.shops.values(), self._kept())
            for shop in list(self.shops.values()):
                if shop.session not in self.asleep:
                    self._open_for_business(shop, readers)

    def pass_time(self, time: timedelta) -> None:
        """Deliver and wake what is due."""
        until = self.now + time
        while True:
            alarm = self.house.next_alarm()
            mail_at = self._mail[0][0] if self._mail else until
            if alarm is not None and alarm[0] <= min(until, mail_at):
                self.now = max(self.now, alarm[0])
                self.house.wake(alarm[1], self.now)
            elif self._mail and mail_at <= until:
                self.now = max(self.now, mail_at)
                self._deliver()
            else:
                break
            self.laws.check(self.house)
            self._introduce()
        self.now = until

    def close(self) -> None:
        """Let everyone return what they have, some properly and some by being killed; wait until all is quiet."""
        self.faults = NONE
        self.house.crash_rate = 0.0
        self.asleep.clear()
        for shop in list(self.shops.values()):
            shop.skew = timedelta()
            if shop.is_void or self.chance.random() < 0.5:
                self.close_shop(shop.session)
        for _ in range(400):
            self.pass_time(TICK)
            for shop in list(self.shops.values()):
                for campaign_id in shop.unfinished():
                    self._say(shop, campaign_id, 0)
                if shop.is_void:
                    self.close_shop(shop.session)
        for session in list(self.shops):
            assert not list(self.shops[session].unfinished()), "what is returned is taken"
            self.close_shop(session)
        self._end_sessions()
        self.pass_time(timedelta(seconds=SESSION_SECONDS_MAX + 2))
        self._end_sessions()
        # The latest confirm, and the hold of the last offer whose process's clock was wrong.
        self.pass_time(timedelta(seconds=5 * self.hold_seconds + 20))

    def go_on(self) -> None:
        """Begin again with new processes, far from midnight, with everyone running and in a hurry."""
        ends_at = find_budget_day(self.now, self.zone).ends_at
        if ends_at - self.now < timedelta(hours=1):
            self.pass_time(timedelta(hours=1))
        for campaign_id in self.costs:
            self.configure(campaign_id, is_running=True, pacing=PacingStrategy.ACCELERATED)
        for _ in range(self.chance.choice([1, 2, 4])):
            self.open_shop()

    # ------------------------------------------------------------ what happens in a tick

    def _open_for_business(self, shop: Shop, readers: int) -> None:
        if shop.is_void:
            self.close_shop(shop.session)
            self.open_shop()
            return
        for _ in range(self.chance.randrange(readers + 1)):
            campaign_id = self.chance.choice(list(self.costs))
            offer = shop.give(campaign_id, self.now)
            if offer is None:
                self.refused += 1
            else:
                self._offered(shop, offer)
        for campaign_id, book in shop.books.items():
            is_due = book.is_needed or book.unreported or book.is_recalled or self.chance.random() < 0.2
            if is_due if book.pending is None else self.chance.random() < 0.3:
                self._say(shop, campaign_id, self.chance.choice([1, 3, 10]))

    def _say(self, shop: Shop, campaign_id: CampaignId, want_offers: int) -> None:
        self._send(self.address(campaign_id), shop.said(campaign_id, want_offers, self.now))

    def _offered(self, shop: Shop, offer: Offer) -> None:
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
        self.unconfirmed[confirm.request_id, 0] = Given(confirm, address, shop.session, not shop.skew)
        self._post(timedelta(seconds=seconds), address, confirm)

    def _go_wrong(self) -> None:
        """Let something happen that nobody wants."""
        self._end_sessions()
        if self.chance.random() < self.faults.crash:
            self.house.crash()
        for shop in list(self.shops.values()):
            self._harm(shop)
        if self.chance.random() < self.faults.change:
            self._change()
        if self.chance.random() < self.faults.reset:
            campaign_id = self.chance.choice(list(self.costs))
            self._send(self.address(campaign_id), OpenWindow(reason="again"), is_lossy=False)

    def _harm(self, shop: Shop) -> None:
        if self.asleep.get(shop.session, self.now) > self.now:
            return
        self.asleep.pop(shop.session, None)
        if self.chance.random() < self.faults.kill:
            self.close_shop(shop.session)
            self.open_shop()
        elif self.chance.random() < self.faults.freeze:
            seconds = self.chance.choice([1, 8, 15, 2 * self.hold_seconds])
            self.asleep[shop.session] = self.now + timedelta(seconds=seconds)
            if seconds > SESSION_SECONDS_MAX:
                self.gone[shop.session] = self.now
        elif self.chance.random() < self.faults.clock_jump:
            jump = self.chance.choice([-3600, -40, -2, 0, 0, 2, 40, 3600])
            shop.skew = timedelta(seconds=jump)

    def _introduce(self) -> None:
        """Tell budget actors that have started again what they may have missed."""
        if self.house.crashes > self._crashes:
            self._crashes = self.house.crashes
            for config in self.configs.values():
                self._send(self.address(config.campaign_id), config, is_lossy=False)
            if self.advertiser is not None:
                self._send(advertiser_address(ADVERTISER_ID), self.advertiser, is_lossy=False)

    def _end_sessions(self) -> None:
        """Take leave of processes that were not heard of for long, until every campaign has kept that."""
        for session, since in list(self.gone.items()):
            if (self.now - since).total_seconds() < SESSION_SECONDS_MAX:
                continue
            unaware = [address for address, state in self._campaigns() if session not in state.sessions_over]
            for address in unaware:
                over = SessionOver(session=session, second=int(self.now.timestamp()))
                self._send(address, over, is_lossy=False)
            if not unaware:
                del self.gone[session]

    def _kept(self) -> dict[CampaignId, CampaignState]:
        return {state.config.campaign_id: state for _, state in self._campaigns() if state.config is not None}

    def _campaigns(self) -> list[tuple[Address, CampaignState]]:
        return [
            (address, kept.state)
            for address, kept in self.house.kept.items()
            if isinstance(kept.state, CampaignState)
        ]

    def _change(self) -> None:
        """Let somebody change a budget, pause or go on."""
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

    def _published(self, topic: str, message: msgspec.Struct) -> None:
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
        heapq.heappush(self._mail, (self.now + delay, next(self._numbers), to, message))

    def _deliver(self) -> None:
        """Deliver a batch: what comes next to the budget actors, or one message to a process."""
        batch: list[tuple[Address, msgspec.Struct]] = []
        size = self.chance.choice([1, 1, 3, 10])
        while self._mail and self._mail[0][0] <= self.now and len(batch) < size:
            _, _, to, message = heapq.heappop(self._mail)
            if isinstance(to, int):
                self._hear(to, message)
            elif not isinstance(message, Confirm) or self._is_due(message):
                batch.append((to, message))
        if batch:
            self.house.run(batch, self.now)

    def _hear(self, session: int, message: msgspec.Struct) -> None:
        shop = self.shops.get(session)
        if shop is None:
            return
        awake_at = self.asleep.get(session, self.now)
        if awake_at > self.now:  # It hears when it is awake.
            self._post(awake_at - self.now, session, message)
        elif isinstance(message, LeaseAnswer | Recall):
            shop.hear(message)

    def _is_due(self, confirm: Confirm) -> bool:
        """Tell whether a confirm is not known yet; it is sent until it is, and sometimes once more."""
        key = (confirm.request_id, confirm.slot)
        if key in self.house.offers:
            given = self.unconfirmed.pop(key, None)
            if given is not None:
                self._judge(given)
            return False
        given = self.unconfirmed[key]
        self._post(CONFIRM_AGAIN, given.address, confirm)
        return True

    def _judge(self, given: Given) -> None:
        """Check that an offer whose hold was there was charged."""
        confirm = given.confirm
        row = next(row for row in reversed(self.house.rows) if row.request_id == confirm.request_id)
        is_in_time = row.at.timestamp() < confirm.second + self.hold_seconds
        if is_in_time and given.is_regular and given.session in self.shops:
            assert row.kind is MoneyKind.CHARGE, "a hold that is confirmed in time is charged"
