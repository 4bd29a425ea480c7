"""Runs of a simulated market: requests in the order of time, offers, what visitors do, charges, day after day.

The clock of leases runs slower than the calendar, so that one report of a lease covers a whole turn: a real process
reports every five seconds, and a simulated one once a turn.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.bid_model import BidCounts, FoundCounts, MultiplierRequest
from adloom.budgets.bids.nets import SHIPPED, FleetWeights
from adloom.budgets.lifetime_counts import LifetimeCounts
from adloom.budgets.messages import (
    COUNTED_LEASE,
    CampaignCounts,
    CampaignMessage,
    ChargeKind,
    Confirm,
    Confirms,
    CountedImpressions,
    MoneyRow,
)
from adloom.core.ids import BannerId, RequestId
from adloom.core.random import Chance
from adloom.events.log.event import BEGINNING, ChargedBy
from adloom.forecast.actors import SimulatedBudgets
from adloom.forecast.bid_strategies import SimulatedStrategies
from adloom.forecast.delivery import SESSION, SimulatedDelivery, SimulatedOffer
from adloom.forecast.market import NamedCampaign, SimulatedMarket
from adloom.forecast.result import CampaignHours, MarketOutcome, MarketTally, RunPlan
from adloom.forecast.traffic import HOUR_SECONDS, Arrival, WeeklyTraffic, learn_shape
from adloom.runtime.actors.actor import Address
from adloom.runtime.random import seed_chance
from adloom.serving.index.index import Candidate, Index
from adloom.serving.leases.local_leases import REPORT_SECONDS

TURN_SECONDS_MIN: Final = 60
TURN_SECONDS_MAX: Final = 600
REQUESTS_A_TURN: Final = 8  # Of a campaign: shorter turns would cost more than the requests.
WITHIN_TURN: Final = 0.2  # Of lease time: less than who was refused waits.
HOLD_SECONDS: Final = 300  # As an installation's, unless a turn is longer.
HOLD_TURNS: Final = 3
DAY_SECONDS: Final = 86_400
DAYS_A_WEEK: Final = 7
OTHER_SLOT: Final = 0.618  # How far apart the chances of a request's slots are.
CONFIRMS_MAX: Final = 500
REQUEST_ID: Final = RequestId(UUID(int=1))  # Of all offers, which their slots tell apart.
_CLICK: Final = ChargedBy.CLICK


class RunChances(msgspec.Struct, frozen=True):
    """The sources of chance of one run: visitors do the same in both runs of a pair, whatever they are offered."""

    traffic: Chance
    pace: Chance


class MarketRun:
    """A market that is being simulated; `iter_hours` advances it."""

    def __init__(
        self,
        market: SimulatedMarket,
        index: Index,
        chances: RunChances,
        *,
        hours: int,
        weights: FleetWeights = SHIPPED,
    ) -> None:
        self._market = market
        self._chances = chances
        self._hours = hours
        self._starts_at = market.starts_at
        self._first_second = int(market.starts_at.timestamp())
        self._turn_seconds = choose_turn_seconds(market)
        self._traffic = WeeklyTraffic(market.cells)
        self._second = self._first_second
        self._now = market.starts_at
        self.tally = MarketTally(
            hours,
            market.scale,
            {one.key: CampaignHours.make_empty(hours) for one in market.campaigns},
        )
        self._campaigns = self.tally.campaigns
        self._rates: dict[tuple[int, int], tuple[float, float]] = {}
        self._by_id = {one.id.int: self.tally.campaigns[one.key] for one in market.campaigns}
        rates = market.response.conversion_rates
        self._with_conversions = {one.id for one in market.campaigns if rates.get(one.key)}
        self._addresses = {one.key: _find_address(one) for one in market.campaigns}
        self._confirms: dict[int, list[Confirm]] = {}
        self._counted: dict[int, list[tuple[int, int, str]]] = {}
        self._entries = self._offers = self._requests = self._filled = 0
        self._seen_share = market.response.seen
        self._banner_ids: dict[bytes, BannerId] = {}
        self._delivery = SimulatedDelivery(market, index, chances.pace)
        self._strategies = SimulatedStrategies(self._count_events, weights)
        self._actors = SimulatedBudgets(
            chances.pace,
            session=SESSION,
            receive=self._receive,
            ask_bids=self._strategies.ask,
            on_charge=self._on_charge,
            shape=learn_shape(market.cells),
        )
        self._lifetime = {one.key: one.counts for one in market.campaigns if one.key in self._delivery.caps}
        self._configure()

    def iter_hours(self) -> Iterator[int]:
        """Simulate hour after hour; yields the number of hours that are over."""
        next_turn = self._first_second
        for hour in range(self._hours):
            for arrival in self._traffic.draw_hour(
                self._starts_at + timedelta(hours=hour), self._chances.traffic
            ):
                while arrival.second >= next_turn:
                    self._turn(next_turn)
                    next_turn += self._turn_seconds
                self._ask(arrival, hour)
            self.tally.requests, self.tally.filled = self._requests, self._filled
            yield hour + 1
        self._set_clock(self._first_second + self._hours * HOUR_SECONDS)
        self._send_confirms()
        self._actors.flush(self._now)

    # ------------------------------------------------------------ requests

    def _ask(self, arrival: Arrival, hour: int) -> None:
        second, _, see, click, _, _ = arrival
        if second != self._second:
            self._set_clock(second)
        if self._delivery.is_urgent:
            self._report()
        offers = self._delivery.serve(arrival, self._now)
        self._requests += 1
        if not offers:
            return
        self._filled += 1
        seen_share = self._seen_share
        for slot, offer in enumerate(offers):
            # Slots of one request differ, and need no further chances.
            if (see + OTHER_SLOT * slot) % 1.0 < seen_share:
                self._see(offer, second, hour, (click + OTHER_SLOT * slot) % 1.0)

    def _see(self, offer: SimulatedOffer, second: int, hour: int, chance: float) -> None:
        candidate, placement, lease, cost, filled, signals = offer
        key = candidate.campaign_key
        counts = self._campaigns[key]
        counts.impressions[hour] += 1
        if lease & COUNTED_LEASE:
            self._entries += 1
            seen = lease & ~COUNTED_LEASE, second, f"{self._entries}-0"
            self._counted.setdefault(key, []).append(seen)
        rates = self._rates.get((candidate.banner_key, placement.key))
        if rates is None:
            rates = self._find_rates(candidate, placement.key)
            self._rates[candidate.banner_key, placement.key] = rates
        is_clicked = chance < rates[0]
        if is_clicked:
            counts.clicks[hour] += 1
            counts.conversions[hour] += chance < rates[1]
        if filled is not None or signals is not None:
            self._delivery.learn(offer, second, is_clicked=is_clicked)
        is_per_click = candidate.price.charged_by is _CLICK
        if cost and (is_clicked or not is_per_click):
            self._confirm(offer, second, ChargeKind.CLICK if is_per_click else ChargeKind.IMPRESSION)

    def _find_rates(self, candidate: Candidate, placement_key: int) -> tuple[float, float]:
        """Return the shares of those who click, and of those who click and convert."""
        response, key = self._market.response, candidate.campaign_key
        clicked = response.find_click_rate(key, placement_key, candidate.banner_key)
        return clicked, clicked * response.conversion_rates.get(key, 0.0)

    def _confirm(self, offer: SimulatedOffer, second: int, kind: ChargeKind) -> None:
        self._offers += 1
        candidate = offer.candidate
        banner_id = self._banner_ids.get(candidate.pair)
        if banner_id is None:
            banner_id = self._banner_ids[candidate.pair] = BannerId(UUID(bytes=candidate.pair[:16]))
        confirm = Confirm(
            request_id=REQUEST_ID,
            slot=self._offers,
            kind=kind,
            lease=offer.lease & ~COUNTED_LEASE,
            second=second,
            amount=offer.cost,
            banner_id=banner_id,
            placement_id=offer.placement.id,
            occurred_at=self._now,
        )
        self._confirms.setdefault(candidate.campaign_key, []).append(confirm)

    # ------------------------------------------------------------ budgets

    def _turn(self, second: int) -> None:
        """Do what happens in the background: charges, timers, caps, reports of leases."""
        self._set_clock(second)
        self._send_confirms()
        self._actors.wake_due(self._now)
        if self._lifetime:
            self._delivery.exclude_capped(self._count_lifetimes())
        self._delivery.advance(self._now)
        self._delivery.check_demand(self._at)
        self._report()
        for address, decided in self._strategies.decide():
            self._actors.send(address, decided, self._now)

    def _report(self) -> None:
        for address, usage in self._delivery.collect_reports(self._second, self._at):
            self._actors.report(address, usage, self._now)
        self._delivery.apply_changes()

    def _send_confirms(self) -> None:
        counted, self._counted = self._counted, {}
        for key, seen in counted.items():
            self._send(key, CountedImpressions(tuple(seen)))
        confirms, self._confirms = self._confirms, {}
        for key, its in confirms.items():
            for start in range(0, len(its), CONFIRMS_MAX):
                self._send(key, Confirms(tuple(its[start : start + CONFIRMS_MAX])))

    def _send(self, campaign_key: int, message: CampaignMessage) -> None:
        self._actors.send(self._addresses[campaign_key], message, self._now)

    def _receive(self, update: Any) -> None:  # noqa: ANN401 - whatever is published
        self._delivery.receive(update, self._now, self._at)

    def _on_charge(self, row: MoneyRow) -> None:
        hour = (row.second - self._first_second) // HOUR_SECONDS
        self._by_id[row.campaign_id.int].spend[min(max(hour, 0), self._hours - 1)] += row.amount

    def _count_events(self, request: MultiplierRequest) -> FoundCounts:
        """Count what a campaign's ads brought since the hour in which its day began."""
        counts = self._by_id[request.campaign_id.int]
        first = max(0, (int(request.counts_since.timestamp()) - self._first_second) // HOUR_SECONDS)
        brought = BidCounts(
            sum(counts.impressions[first:]), sum(counts.clicks[first:]), sum(counts.conversions[first:])
        )
        return FoundCounts(brought, request.campaign_id in self._with_conversions)

    def _count_lifetimes(self) -> dict[int, LifetimeCounts]:
        return {
            key: before
            + LifetimeCounts(
                sum(self.tally.campaigns[key].impressions), sum(self.tally.campaigns[key].clicks)
            )
            for key, before in self._lifetime.items()
        }

    # ------------------------------------------------------------ the clock

    @property
    def _at(self) -> float:
        """The time of leases: between turns it hardly moves, so that who was refused asks again in the next one."""
        turns, seconds = divmod(self._second - self._first_second, self._turn_seconds)
        # It begins at 1, since at 0 nothing was ever sent.
        return 1 + REPORT_SECONDS * turns + WITHIN_TURN * seconds / self._turn_seconds

    def _set_clock(self, second: int) -> None:
        self._second = second
        self._now = datetime.fromtimestamp(second, UTC)

    def _configure(self) -> None:
        hold_seconds = max(HOLD_SECONDS, HOLD_TURNS * self._turn_seconds)
        self._actors.configure(
            self._market.advertisers,
            [
                (
                    msgspec.structs.replace(one.config, hold_seconds=hold_seconds),
                    CampaignCounts(
                        impressions=one.counts.impressions,
                        clicks=one.counts.clicks,
                        until=BEGINNING,
                        complete_until=self._first_second + self._hours * HOUR_SECONDS,  # None is late here.
                    ),
                )
                for one in self._market.campaigns
            ],
            self._starts_at,
        )


def choose_turn_seconds(market: SimulatedMarket) -> int:
    """Return how long a turn is: long enough that turns cost less than the requests between them."""
    requests_a_day = max(1.0, market.requests_a_week / DAYS_A_WEEK)
    wanted = len(market.campaigns) * DAY_SECONDS * REQUESTS_A_TURN / requests_a_day
    return int(min(max(wanted, TURN_SECONDS_MIN), TURN_SECONDS_MAX))


def _find_address(campaign: NamedCampaign) -> Address:
    return make_campaign_address(campaign.id, campaign.config.advertiser_id)


def make_chances(seed: int, run: int) -> RunChances:
    """Return the chances of a run: the same for the same seed, on every machine."""
    return RunChances(seed_chance(f"{seed}/{run}/traffic"), seed_chance(f"{seed}/{run}/pace"))


def simulate_runs(  # noqa: PLR0913 - what a simulation is made of
    market: SimulatedMarket,
    changed: SimulatedMarket | None,
    plan: RunPlan,
    *,
    weights: FleetWeights = SHIPPED,
    on_hour: Callable[[], None] = lambda: None,
    is_late: Callable[[int], bool] = lambda _: False,
) -> MarketOutcome:
    """Simulate pairs of runs; after the first two, no other begins once `is_late` of the number that is done."""
    index = market.compile_index()
    changed_index = None if changed is None else changed.compile_index()
    outcome = MarketOutcome([], None if changed is None else [])
    for run in range(plan.runs):
        if is_late(run):
            break
        outcome.before.append(
            _simulate(
                MarketRun(market, index, make_chances(plan.seed, run), hours=plan.hours, weights=weights),
                on_hour,
            )
        )
        if changed is not None and changed_index is not None and outcome.after is not None:
            chances = make_chances(plan.seed, run)
            outcome.after.append(
                _simulate(
                    MarketRun(changed, changed_index, chances, hours=plan.hours, weights=weights), on_hour
                )
            )
    return outcome


def _simulate(run: MarketRun, on_hour: Callable[[], None]) -> MarketTally:
    hours: Iterator[int] = run.iter_hours()
    for _ in hours:
        on_hour()
    return run.tally
