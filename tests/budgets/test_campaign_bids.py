"""A campaign's bid multiplier: when it asks, what it uses of an answer, and that no answer can make it overspend."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from math import inf, nan
from random import Random
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.bidding.decide import ShadowedAnswer, WindowRequest, decide, decide_with_shadows
from adloom.bidding.ports import Nets
from adloom.bidding.state import BidState
from adloom.bidding.window import BidDecision, BidRules, BidStrategy, BidWindow
from adloom.budgets.bid_model import (
    BidCounts,
    BidProgress,
    BidRow,
    BidsDecided,
    FoundCounts,
    MultiplierRequest,
    build_window_request,
)
from adloom.budgets.bids.decider import BidDecider, add_counts
from adloom.budgets.campaign.bids import ANSWER_SECONDS_MAX, bound_multiplier, get_multiplier
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import LeaseAnswer, OpenWindow
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address
from adloom.schedule.pace_control import PaceState
from tests.budgets.builders import CAMPAIGN_ID, UNIT, CampaignBench, a_campaign, a_usage
from tests.support.eventually import measure_fastest

MIDNIGHT = datetime(2026, 11, 15, tzinfo=UTC)
WINDOW = timedelta(minutes=15)

anything = st.floats(allow_nan=True, allow_infinity=True)


def a_bidder(**fields: object) -> CampaignBench:
    """A campaign with a bid, at midnight, that spends 100 units a day."""
    return CampaignBench(a_campaign(**{"has_bid": True, **fields}), now=MIDNIGHT)


def an_answer(request: MultiplierRequest, multiplier: float, **fields: object) -> BidsDecided:
    """A decision as some strategy might say it."""
    return msgspec.structs.replace(
        BidsDecided(
            day=request.day,
            window=request.window.window,
            strategy=request.strategy,
            decision=BidDecision(multiplier=multiplier, reason=str(request.strategy)),
            memory=BidState(window=request.window.window),
            shadows={},
            counts=request.counts,
            counted_before=request.counted_before,
        ),
        **fields,
    )


def asked(bench: CampaignBench) -> MultiplierRequest:
    [request] = bench.published(MultiplierRequest)
    return request


def test_a_campaign_asks_once_in_each_window_and_bids_what_is_decided() -> None:
    bench = a_bidder(bid_strategy=BidStrategy.PACER)
    first = bench.answered(report=1)
    request = asked(bench)
    bench.take(an_answer(request, 0.4))
    [row] = bench.recorded(BidRow)
    second = bench.answered(report=2, lease=first.lease)

    assert (first.multiplier, second.multiplier) == (1.0, 0.4)
    assert bench.published(MultiplierRequest) == []
    assert (request.window.window, request.window.budget, row.multiplier) == (0, 100 * UNIT, 0.4)
    bench.take(a_usage(report=3, lease=first.lease, requests=7, opportunities=50), after=WINDOW)
    assert asked(bench).window.window == 1
    assert asked(bench).window.opportunities == 50
    assert asked(bench).window.last_multiplier == 0.4


def test_a_strategy_hears_which_share_of_opportunities_the_pace_let_through() -> None:
    bench = a_bidder(bid_strategy=BidStrategy.PACER)
    bench.answered(report=1)
    bench.state = msgspec.structs.replace(bench.state, pace=PaceState(throttle=0.8))
    bench.take(a_usage(report=2, lease=1, opportunities=30))
    bench.state = msgspec.structs.replace(bench.state, pace=None)
    bench.take(a_usage(report=3, lease=1, opportunities=10), after=WINDOW)

    assert asked(bench).window.opportunities == 40
    assert asked(bench).window.let_through == pytest.approx(0.4)


def test_a_budget_that_is_reset_hides_no_cost_from_the_strategy() -> None:
    bench = a_bidder(bid_strategy=BidStrategy.PACER)
    bench.answered(report=1)
    bench.take(an_answer(asked(bench), 1.0))
    lease = bench.answered(report=2, want=Micros(50 * UNIT)).lease
    bench.take(bench.offered(lease, Micros(30 * UNIT)))
    bench.take(OpenWindow(reason="a test"))
    lease = bench.answered(report=3, want=Micros(50 * UNIT)).lease
    bench.take(bench.offered(lease, Micros(5 * UNIT)))
    bench.take(a_usage(report=4, lease=lease, opportunities=50), after=WINDOW)

    window = asked(bench).window
    assert (window.window_cost, window.cost, window.remaining) == (35 * UNIT, 35 * UNIT, 95 * UNIT)
    bench.take(an_answer(asked(bench), 1.0))
    assert [row.spent for row in bench.recorded(BidRow)] == [35 * UNIT]


def test_a_campaign_without_a_bid_never_asks() -> None:
    bench = CampaignBench(now=MIDNIGHT)

    assert bench.answered(report=1).multiplier == 1.0
    assert bench.published(MultiplierRequest) == []


def test_windows_are_shorter_where_days_are_simulated() -> None:
    bench = a_bidder()

    bench.take(a_usage(report=1, day_seconds=600))
    assert asked(bench).window.windows == 96 * 144
    bench.take(an_answer(asked(bench), 1.0))
    bench.take(a_usage(report=2, lease=1, day_seconds=600), after=timedelta(seconds=6.25))

    assert asked(bench).window.window == 1


def test_without_an_answer_the_campaign_falls_back_and_says_why() -> None:
    bench = a_bidder(bid_strategy=BidStrategy.FLEET, target=UNIT)
    lease = bench.answered(report=1).lease
    bench.take(a_usage(report=2, lease=lease), after=timedelta(seconds=ANSWER_SECONDS_MAX - 1))
    assert bench.recorded(BidRow) == []

    bench.take(a_usage(report=3, lease=lease), after=timedelta(seconds=2))

    [row] = bench.recorded(BidRow)
    assert row.reason == "fallback: the strategies did not answer in time"
    assert 0 < row.multiplier <= 1


def test_a_late_answer_changes_nothing() -> None:
    bench = a_bidder(bid_strategy=BidStrategy.PACER)
    lease = bench.answered(report=1).lease
    request = asked(bench)
    bench.take(a_usage(report=2, lease=lease), after=WINDOW)
    bench.take(an_answer(request, 0.1))

    assert get_multiplier(bench.state) == 1.0
    assert bench.recorded(BidRow) == []


@pytest.mark.parametrize("budget", [None, Micros(0)])
async def test_without_a_daily_budget_bids_are_made_in_full_and_counted(budget: Micros | None) -> None:
    bench = a_bidder(daily_budget=budget, total_budget=Micros(100 * UNIT), bid_strategy=BidStrategy.PACER)
    answer = bench.answered(report=1)
    [decided], _ = await decide_with(decide_with_shadows, request=asked(bench))
    later = msgspec.structs.replace(decided, counts=decided.counts + BidCounts(30, 2, 1))
    bench.take(later)

    assert answer.multiplier == 1.0
    [row] = bench.recorded(BidRow)
    assert (row.multiplier, row.reason, row.shadows) == (1.0, "fallback: no daily budget", {})
    assert (row.impressions, row.clicks, row.conversions) == (30, 2, 1)


def test_without_a_daily_budget_a_campaign_that_hears_nothing_bids_in_full() -> None:
    bench = a_bidder(daily_budget=None, bid_strategy=BidStrategy.PACER)
    lease = bench.answered(report=1).lease
    bench.take(a_usage(report=2, lease=lease), after=timedelta(seconds=ANSWER_SECONDS_MAX))

    assert [(row.multiplier, row.reason) for row in bench.recorded(BidRow)] == [
        (1.0, "fallback: no daily budget")
    ]


def test_a_day_begins_without_the_counts_of_the_one_before() -> None:
    bench = a_bidder(bid_strategy=BidStrategy.PACER)
    bench.take(a_usage(report=1), after=WINDOW)
    bench.take(an_answer(asked(bench), 0.5, counts=BidCounts(1000, 10)))
    bench.take(a_usage(report=2, lease=0), after=timedelta(days=1))

    request = asked(bench)
    assert (request.counts, request.days_before) == (BidCounts(), BidCounts(800, 8))
    assert request.window.window == 1


@pytest.mark.parametrize("windows_later", [0, 3], ids=["same window", "later window"])
def test_a_strategy_begins_a_day_at_whatever_window_is_its_first(windows_later: int) -> None:
    bench = a_bidder(bid_strategy=BidStrategy.PACER)
    for number in range(1, 4):
        bench.take(a_usage(report=number, opportunities=100), after=WINDOW)
        answer = decide(build_window_request(asked(bench)), Nets())
        bench.take(an_answer(asked(bench), 0.5, memory=answer.state))
    bench.take(a_usage(report=4), after=timedelta(days=1) + windows_later * WINDOW)

    memory = decide(build_window_request(asked(bench)), Nets()).state

    assert (memory.traffic, memory.pacer.traffic, memory.pacer.day_before) == (0, 0, 200)


@given(anything, st.none() | anything)
def test_bids_use_at_most_one_and_at_most_the_guard(wanted: float, limit: float | None) -> None:
    used = bound_multiplier(BidDecision(multiplier=wanted, reason="x", limit=limit))

    assert used is None or 0 < used <= 1
    assert used is not None or not 0 <= wanted < inf


@given(st.lists(st.tuples(anything, st.integers(1, 5), st.booleans()), max_size=40), st.integers(0, 2**32))
def test_no_multiplier_makes_a_campaign_spend_more_than_its_budget(
    steps: list[tuple[float, int, bool]], seed: int
) -> None:
    bench = a_bidder(daily_budget=Micros(5 * UNIT), bid_strategy=BidStrategy.FLEET, target=UNIT)
    chance = Random(seed)  # noqa: S311 - not a secret
    lease, left, day, granted = 0, 0, bench.state.day, 0
    given: list[tuple[int, int]] = []
    for report, (wanted, offers, is_answered) in enumerate(steps, 1):
        bench.take(
            a_usage(report=report, lease=lease, given=tuple(given), want=offers * UNIT, requests=offers),
            after=timedelta(minutes=chance.choice([0, 1, 15, 60])),
        )
        given = []
        for answer in bench.published(LeaseAnswer):
            assert 0 < answer.multiplier <= 1
            is_over = answer.ends_at <= bench.now or not answer.lease
            lease, granted = (0, 0) if is_over else (answer.lease, answer.granted - answer.given)
            left = granted
        if is_answered and (requests := bench.published(MultiplierRequest)):
            bench.take(an_answer(requests[0], wanted))
        if left >= UNIT:
            given = [(bench.second, UNIT)]
            left -= UNIT
            if chance.random() < 0.8:
                bench.take(bench.offered(lease))
        assert bench.state.day >= day
        day = bench.state.day
        for spent in bench.state.spent_by_day.values():
            assert spent <= 5 * UNIT


def play_a_morning(seed: int) -> list[BidRow]:
    """Let a campaign decide window by window with the real strategies, and some traffic."""
    bench, chance = a_bidder(bid_strategy=BidStrategy.PACER), Random(seed)  # noqa: S311 - not a secret
    rows: list[BidRow] = []
    lease = 0
    for report in range(1, 20):
        lease = bench.answered(report=report, lease=lease, opportunities=500).lease
        if requests := bench.published(MultiplierRequest):
            asked_now = add_counts(requests[0], found_counts(100 * report, report))
            [found] = decide_with_shadows(
                [WindowRequest(asked_now.strategy, asked_now.memory, asked_now.window, asked_now.rules)],
                Nets(),
            )
            bench.take(
                an_answer(asked_now, found.decision.multiplier, memory=found.state, counts=asked_now.counts)
            )
            rows += bench.recorded(BidRow)
        for _ in range(5):
            if chance.random() < get_multiplier(bench.state):
                bench.take(bench.offered())
        bench.now += WINDOW
    return rows


def test_the_same_seed_gives_the_same_multipliers() -> None:
    rows = play_a_morning(7)

    assert rows == play_a_morning(7)
    assert len(rows) == 19
    assert len({row.multiplier for row in rows}) > 2


def test_states_of_the_version_before_are_read() -> None:
    written = msgspec.msgpack.decode(msgspec.msgpack.encode(a_bidder().state))
    del written["bids"]
    for name in ("has_bid", "bid_strategy", "target"):
        del written["config"][name]

    read = msgspec.msgpack.decode(msgspec.msgpack.encode(written), type=CampaignState)

    assert read.bids is None
    assert read.configured.bid_strategy is BidStrategy.FIXED


def test_a_state_with_a_decision_is_read_again() -> None:
    bench = a_bidder(bid_strategy=BidStrategy.PACER)
    bench.take(a_usage(report=1))
    bench.take(an_answer(asked(bench), 0.3))

    read = msgspec.msgpack.decode(msgspec.msgpack.encode(bench.state), type=CampaignState)

    assert read == bench.state
    assert isinstance(read.bids, BidProgress)


# ---------------------------------------------------------------- the decider


def a_request(**fields: object) -> MultiplierRequest:
    window = BidWindow(
        window=10,
        budget=100.0 * UNIT,
        remaining=90.0 * UNIT,
        target=1.0 * UNIT,
        cost=10.0 * UNIT,
        value=0.0,
        window_cost=1.0 * UNIT,
        window_value=0.0,
        opportunities=500.0,
        wins=0.0,
        traffic_share=0.01,
        traffic_left=0.9,
    )
    return msgspec.structs.replace(
        MultiplierRequest(
            campaign_id=CAMPAIGN_ID,
            advertiser_id=None,
            day=date(2026, 11, 15),
            counts_since=MIDNIGHT,
            strategy=BidStrategy.FLEET,
            memory=BidState(window=9, traffic=400.0),
            window=window,
            rules=BidRules(),
            counts=BidCounts(1000, 10),
            counted_before=BidCounts(),
            days_before=BidCounts(),
        ),
        **fields,
    )


def found_counts(impressions: int, clicks: int, conversions: int = 0, **fields: bool) -> FoundCounts:
    return FoundCounts(BidCounts(impressions, clicks, conversions), **{"has_conversions": False, **fields})


def test_the_value_of_ads_is_what_they_bring_at_the_campaigns_own_rate() -> None:
    by_click = add_counts(a_request(), found_counts(2000, 40))
    before = a_request(days_before=BidCounts(8000, 100, 20))
    by_conversion = add_counts(before, found_counts(2000, 40, has_conversions=True))

    assert (by_click.window.value, by_click.window.window_value, by_click.window.wins) == (40.0, 20.0, 1000.0)
    assert by_conversion.window.value == pytest.approx(2000 * 20 / 10_000)
    assert by_click.rules.is_calibrated
    assert not add_counts(a_request(), found_counts(2000, 9)).rules.is_calibrated


@pytest.mark.parametrize(("conversions", "value"), [(0, 0.0), (1, 1.0), (9, 9.0), (10, 10.0)])
def test_clicks_are_no_conversions_where_these_are_reported(conversions: int, value: float) -> None:
    found = add_counts(a_request(), found_counts(100_000, 1_000, conversions, has_conversions=True))

    assert found.window.value == pytest.approx(value)
    assert found.rules.is_calibrated == (conversions >= 10)


def test_conversions_that_an_advertiser_does_not_ask_for_change_no_bid() -> None:
    found = add_counts(a_request(), found_counts(2000, 40, conversions=20))

    assert found.window.value == 40.0


class FixedCounts:
    """Counts without a database."""

    async def read(self, requests: Sequence[MultiplierRequest]) -> Mapping[UUID, FoundCounts]:
        return {one.campaign_id: found_counts(2000, 40) for one in requests}


async def decide_with(
    strategy: "object",
    *,
    seconds_max: float = 5.0,
    rounds: int = 1,
    request: MultiplierRequest | None = None,
) -> tuple[list[BidsDecided], BidDecider]:
    """Ask the decider, whose strategies are replaced."""
    told: list[BidsDecided] = []

    def tell(address: Address, message: msgspec.Struct) -> bool:
        assert address.key.endswith(str(CAMPAIGN_ID))
        assert isinstance(message, BidsDecided)
        told.append(message)
        return True

    decider = BidDecider(FixedCounts(), load_nets=Nets, decide=strategy, seconds_max=seconds_max)  # type: ignore[arg-type]
    decider.tell = tell
    for _ in range(rounds):
        await decider.answer([request or a_request()])
    return told, decider


async def test_a_strategy_that_raises_is_replaced_by_the_pacer() -> None:
    def raise_it(*_: object) -> list[ShadowedAnswer]:
        raise ZeroDivisionError

    [decided], _ = await decide_with(raise_it)

    assert decided.decision.fallback == "the strategy failed"
    assert 0 < decided.decision.multiplier <= 1


async def test_a_strategy_that_hangs_answers_nobody_and_stops_nobody() -> None:
    def hang(requests: Sequence[WindowRequest], nets: Nets) -> list[ShadowedAnswer]:
        time.sleep(0.2)
        return decide_with_shadows(requests, nets)

    async def decide() -> None:
        told, decider = await decide_with(hang, seconds_max=0.01, rounds=3)

        assert told == []
        assert decider.failed == 3

    assert await measure_fastest(decide, seconds=0.15) < 0.15


async def test_each_decision_has_what_the_other_strategies_would_have_bid() -> None:
    [decided], _ = await decide_with(decide_with_shadows)

    assert set(decided.shadows) == {"fixed", "pacer", "dqn"}
    assert decided.shadows[BidStrategy.FIXED].multiplier == 1.0
    assert decided.counts == BidCounts(2000, 40)


@pytest.mark.parametrize("wanted", [nan, inf, -inf, -1.0])
def test_nonsense_is_replaced_and_named(wanted: float) -> None:
    bench = a_bidder(bid_strategy=BidStrategy.DQN, target=UNIT)
    bench.take(a_usage(report=1))
    bench.take(an_answer(asked(bench), wanted))

    [row] = bench.recorded(BidRow)
    assert (row.multiplier, row.reason) == (1.0, "fallback: the strategy answered no number")
