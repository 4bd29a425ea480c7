"""Days of a smooth campaign through the real leases and the real step: visitors, auctions, views and clicks are drawn."""

import heapq
import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from math import exp
from typing import Any, Final, NamedTuple

import msgspec

from adloom.budgets.messages import (
    CampaignExhausted,
    CampaignMessage,
    CampaignRestored,
    ChargeKind,
    CheckClock,
    Confirm,
    Confirms,
    LeaseAnswer,
    Recall,
    SpendUpdate,
)
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Publish
from adloom.schedule.budget_day import build_budget_day
from adloom.schedule.pacing import PacingStrategy
from adloom.schedule.traffic_shape import FLAT, TrafficShape, build_day_curve
from adloom.serving.index.rows import LeaseTerms
from adloom.serving.leases.local_leases import LocalLeases
from tests.budgets.builders import CAMPAIGN_ID, CampaignBench, a_campaign, a_confirm

KEY: Final = 7
BID: Final = Micros(10_000)  # For an impression,
CLICK_BID: Final = Micros(100 * BID)  # and for a click.
SEEN: Final = 0.9
SECONDS_TO_VIEW: Final = 3.0
SECONDS_TO_CLICK: Final = 20.0
MANY: Final = 30.0  # Their number is drawn faster.
# How busy each hour of a day is on a news site.
NEWS: Final = (9, 6, 4, 4, 4, 5, 9, 15, 20, 22, 23, 24, 26, 25, 24, 23, 24, 26, 29, 33, 36, 34, 26, 16)
SHAPED: Final = tuple(map(float, NEWS))


class Market(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign meets on each day."""

    offers: int  # That its budget pays for.
    demand: float = 2.0  # How many times as many it could make.
    win_rate: float = 1.0  # Of the requests in which it takes part.
    price: float = 1.0  # Paid, as a share of the bid,
    spread: float = 0.0  # more or less by up to this share.
    click_rate: float | None = None  # Where clicks are paid.
    predicted: float = 1.0  # Clicks that were expected for each that comes.
    hours: tuple[float, ...] = FLAT
    processes: int = 1


class Moment(NamedTuple):
    """How far a day is."""

    of_traffic: float  # The share that has come,
    of_budget: float  # and the share that is spent.


class PacedDays(CampaignBench):
    """One campaign, and the delivery processes that serve it."""

    def __init__(self, market: Market, day: date = date(2026, 11, 17), timezone: str = "UTC") -> None:
        self.market = market
        self.draws = random.Random(1)  # noqa: S311 - seeded, so that runs repeat
        self.shape = TrafficShape(market.hours, market.hours, timezone)
        self.day = build_budget_day(day, timezone)
        self.seconds = self.day.length_micros // 1_000_000
        self.curve = build_day_curve(self.shape, self.day.starts_at, self.day.ends_at)
        self.starts_at = self.day.starts_at
        self.at = 1.0
        self.woken: datetime | None = None
        rate, paid = market.click_rate, market.price * SEEN
        self.bid = self.hold = BID
        if rate is not None:
            self.bid = CLICK_BID
            self.hold = Micros(max(int(3 * CLICK_BID * rate * market.predicted), CLICK_BID // 100))
            paid *= rate
        self.budget = Micros(int(market.offers * self.bid * paid))
        self.requests = market.offers * market.demand / market.win_rate
        self.confirms: list[tuple[float, int, Confirm]] = []
        super().__init__(
            a_campaign(daily_budget=self.budget, pacing=PacingStrategy.SMOOTH, timezone=timezone),
            self.starts_at,
        )
        terms = LeaseTerms(CAMPAIGN_ID, None, self.hold, Micros(0) if rate is None else CLICK_BID)
        self.processes = [
            LocalLeases(session, draw=self.draws.random) for session in range(1, market.processes + 1)
        ]
        for leases in self.processes:
            leases.update({1: {KEY: terms}}, at=self.at)

    def run(self, days: int = 1) -> Iterator[Moment]:
        """Simulate second after second; yields the state of a day once a minute."""
        for minute in range(days * self.seconds // 60):
            of_day = self.starts_at + timedelta(minutes=minute % (self.seconds // 60))
            expected = self.requests * self.curve.get_volume(of_day) / self.seconds  # The same for an hour.
            for second in range(60 * minute, 60 * minute + 60):
                self.now, self.at = self.starts_at + timedelta(seconds=second), 1.0 + second
                for _ in range(self._draw_count(expected)):
                    self._request(self.draws.choice(self.processes))
                self._pass_second(second)
            of_traffic = self.curve.compute_share(of_day + timedelta(seconds=59))
            yield Moment(of_traffic, self.state.spent_window / self.budget)

    def _pass_second(self, second: int) -> None:
        due: list[Confirm] = []
        while self.confirms and self.confirms[0][0] <= second:
            due.append(heapq.heappop(self.confirms)[2])
        if due:
            self._tell(Confirms(tuple(due)))
        while self.woken is not None and self.woken <= self.now:
            self._tell(CheckClock())
        for leases in self.processes:
            leases.on_demand(KEY, at=self.at)
            reports = leases.collect_reports(
                second=self.second, at=self.at, most=10, is_wanted=lambda _: True
            )
            for _, usage in reports:
                self._tell(msgspec.structs.replace(usage, shape=self.shape))

    def _tell(self, message: CampaignMessage) -> None:
        self.take(message)
        self.woken = self.woken_at if self.effects else self.woken
        for effect in self.effects:
            if isinstance(effect, Publish):
                for leases in self.processes:
                    self._receive(leases, effect.message)

    def _receive(self, leases: LocalLeases, update: Any) -> None:
        match update:
            case LeaseAnswer(session=leases.session):
                leases.on_answer(update, second=self.second, at=self.at)
            case Recall():
                leases.on_recall(update, second=self.second, at=self.at)
            case SpendUpdate():
                leases.on_spend_update(CAMPAIGN_ID, at=self.at)
            case CampaignExhausted():
                leases.on_campaign_exhausted(CAMPAIGN_ID, at=self.at)
            case CampaignRestored():
                leases.on_campaign_restored(CAMPAIGN_ID, at=self.at)
            case _:
                pass

    def _request(self, leases: LocalLeases) -> None:
        """Let the campaign take part, win, be seen and be clicked, or not."""
        market, draw = self.market, self.draws.random
        if leases.registry.leases[KEY].reason is not None or leases.is_left_out(KEY):
            return
        if draw() >= market.win_rate:
            return
        paid = market.price * (1 + market.spread * (2 * draw() - 1))
        lease = leases.reserve(KEY, int(self.hold * paid), self.second, is_drawn=True)
        if lease is None or draw() >= SEEN or (market.click_rate is not None and draw() >= market.click_rate):
            return
        is_click = market.click_rate is not None
        self.offers += 1
        confirm = a_confirm(
            self.offers,
            lease=lease,
            second=self.second,
            amount=Micros(int(self.bid * paid)),
            kind=ChargeKind.CLICK if is_click else ChargeKind.IMPRESSION,
        )
        delay = self.draws.expovariate(1 / (SECONDS_TO_CLICK if is_click else SECONDS_TO_VIEW))
        heapq.heappush(self.confirms, (self.at + delay, self.offers, confirm))

    def _draw_count(self, expected: float) -> int:
        """Draw how many come, of a Poisson distribution."""
        if expected > MANY:
            return max(0, round(self.draws.gauss(expected, expected**0.5)))
        limit, count, product = exp(-expected), 0, self.draws.random()
        while product > limit:
            count += 1
            product *= self.draws.random()
        return count
