"""Laws of simulated markets: no budget is overspent, a seed gives the same run, caps hold."""

from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adloom.auction.bid import BidType
from adloom.auction.learned import LEARNED
from adloom.auction.score import HEURISTIC
from adloom.bidding.window import BidStrategy
from adloom.budgets.messages import BudgetVerdict, LeaseAnswer
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.events.frequency.windows import Window
from adloom.forecast.delivery import SESSION, SimulatedDelivery
from adloom.forecast.file.parts import AdvertiserPart, CampaignPart, FrequencyPart, RivalsPart
from adloom.forecast.market import SimulatedMarket, thin_out
from adloom.forecast.traffic import Arrival
from adloom.schedule.pacing import PacingStrategy
from adloom.serving.index.rows import Delivery
from tests.forecast.markets import HOURS, a_campaign, a_market, a_placement, shown, simulate, spent_micros

DEAR = a_placement(floor=2.0)  # A single bidder pays the floor.
BUDGETS = st.one_of(st.none(), st.floats(0.0, 0.6))


@st.composite
def campaigns(draw: st.DrawFn) -> CampaignPart:
    return CampaignPart(
        name=draw(st.sampled_from("ABCDEF")),
        bid=draw(st.floats(0.1, 20.0)),
        bid_type=draw(st.sampled_from(BidType)),
        daily_budget=draw(BUDGETS),
        total_budget=draw(BUDGETS),
        pacing=draw(st.sampled_from(PacingStrategy)),
        bid_strategy=draw(st.sampled_from([BidStrategy.FIXED, BidStrategy.PACER])),
        zone=draw(st.sampled_from(["UTC", "Asia/Kolkata"])),
        advertiser=draw(st.sampled_from([None, "payer"])),
        click_rate=draw(st.sampled_from([0.0, 0.05, 1.0])),
        impression_cap=draw(st.one_of(st.none(), st.integers(0, 40))),
        click_cap=draw(st.one_of(st.none(), st.integers(0, 10))),
    )


@st.composite
def markets(draw: st.DrawFn) -> SimulatedMarket:
    rivals = draw(st.one_of(st.none(), st.just(RivalsPart(share=0.5, median=1.5))))
    delivery = draw(st.sampled_from([Delivery.AUCTION, Delivery.DIRECT]))
    return a_market(
        *draw(st.lists(campaigns(), min_size=1, max_size=4)),
        placements=(
            a_placement("one", requests_a_day=150.0, rivals=rivals),
            a_placement("two", requests_a_day=100.0, delivery=delivery, slots=2),
        ),
        advertisers=(AdvertiserPart(name="payer", daily_budget=draw(BUDGETS)),),
        seen=draw(st.sampled_from([0.5, 1.0])),
    )


@given(markets(), st.integers(0, 1_000))
@settings(max_examples=25, deadline=None)
def test_no_simulated_campaign_or_advertiser_spends_more_than_its_budget(
    market: SimulatedMarket, seed: int
) -> None:
    tally = simulate(market, seed=seed, days=2)

    for campaign in market.campaigns:
        config, counts = campaign.config, tally.campaigns[campaign.key]
        if config.daily_budget is not None and config.timezone == "UTC":
            assert max(spent_micros(tally, campaign.key, day=day) for day in (0, 1)) <= config.daily_budget
        if config.total_budget is not None:
            assert sum(counts.spend) <= config.total_budget
        if config.impression_cap is not None:
            assert sum(counts.impressions) <= config.impression_cap
    [payer] = market.advertisers
    if payer.daily_budget is not None:
        own = [one.key for one in market.campaigns if one.config.advertiser_id == payer.advertiser_id]
        for day in (0, 1):
            assert sum(spent_micros(tally, key, day=day) for key in own) <= payer.daily_budget


def test_a_seed_gives_the_same_run_and_another_seed_another_one() -> None:
    market = a_market(a_campaign(daily_budget=0.3), a_campaign("Rival", copies=3, bid_spread=0.4))

    first, again, other = (simulate(market, seed=seed) for seed in (7, 7, 8))

    assert msgspec.to_builtins(first) == msgspec.to_builtins(again)
    assert msgspec.to_builtins(first) != msgspec.to_builtins(other)


def test_a_budget_that_the_traffic_can_spend_is_spent() -> None:
    market = a_market(a_campaign(daily_budget=0.5, pacing=PacingStrategy.ACCELERATED), placements=(DEAR,))

    tally = simulate(market, days=2)

    for day in (0, 1):
        assert spent_micros(tally, 1, day=day) > 0.9 * 0.5 * MICROS_PER_UNIT


def test_smooth_pacing_leaves_budget_for_the_evening() -> None:
    hours = {
        pacing: simulate(a_market(a_campaign(daily_budget=0.3, pacing=pacing), placements=(DEAR,)))
        .campaigns[1]
        .spend
        for pacing in PacingStrategy
    }

    assert sum(hours[PacingStrategy.SMOOTH][HOURS // 2 :]) > 0
    assert sum(hours[PacingStrategy.ACCELERATED][HOURS // 2 :]) < sum(
        hours[PacingStrategy.SMOOTH][HOURS // 2 :]
    )


def test_smooth_pacing_follows_the_traffic() -> None:
    placement = a_placement(requests_a_day=6_000.0, floor=2.0)
    market = a_market(a_campaign(daily_budget=3.0), placements=(placement,))

    spend = simulate(market).campaigns[1].spend

    assert 0.97 * 3.0 * MICROS_PER_UNIT <= sum(spend) <= 3.0 * MICROS_PER_UNIT
    assert 0.45 <= sum(spend[: HOURS // 2]) / sum(spend) <= 0.55


def test_the_higher_bid_wins_and_pays_what_the_second_would_have() -> None:
    market = a_market(a_campaign("High", bid=3.0), a_campaign("Low", bid=1.0))

    tally = simulate(market)

    assert shown(tally, 1) == tally.requests
    assert shown(tally, 2) == 0
    assert spent_micros(tally, 1) == pytest.approx(shown(tally, 1) * 1_010, rel=0.01)


@pytest.mark.parametrize(("median", "share_won"), [(1.0, 1.0), (9.0, 0.0)])
def test_a_bid_from_outside_sets_the_price_or_wins(median: float, share_won: float) -> None:
    rivals = RivalsPart(share=1.0, median=median, spread=0.0)
    tally = simulate(a_market(a_campaign(bid=3.0), placements=(a_placement(rivals=rivals),)))

    assert shown(tally, 1) == share_won * tally.requests
    assert spent_micros(tally, 1) == shown(tally, 1) * 1_010


def test_a_bid_from_outside_sets_the_price_also_where_a_pace_leaves_out_the_best() -> None:
    rivals = RivalsPart(share=1.0, median=1.0, spread=0.0)
    market = a_market(
        a_campaign("Paced", bid=3.0, daily_budget=4.0),
        a_campaign("Next", bid=2.0),
        placements=(a_placement(requests_a_day=6_000.0, rivals=rivals),),
    )

    tally = simulate(market)

    assert shown(tally, 1) > 500
    assert shown(tally, 2) > 500
    assert spent_micros(tally, 2) == shown(tally, 2) * 1_010


def test_a_frequency_cap_holds_for_each_visitor() -> None:
    capped = a_campaign(frequency=FrequencyPart(window=Window.DAY, impressions=2))
    market = a_market(capped, people=20)

    assert 0 < shown(simulate(market), 1) <= 2 * 20


def test_a_frequency_cap_holds_where_a_pace_leaves_out_all_before_it() -> None:
    paced: dict[str, Any] = {"bid": 3.0, "daily_budget": 9.0}
    capped = a_campaign("Capped", frequency=FrequencyPart(window=Window.DAY, impressions=2), daily_budget=9.0)
    market = a_market(a_campaign(**paced), a_campaign("Next", **paced), capped, people=20)
    delivery = SimulatedDelivery(market, market.compile_index(), Random(1))  # noqa: S311 - seeded
    now, second = market.starts_at, int(market.starts_at.timestamp())
    for terms, usage in delivery.leases.collect_reports(
        second=second, at=1.0, most=3, is_wanted=lambda _: True
    ):
        answer = LeaseAnswer(
            campaign_id=terms.campaign_id,
            session=SESSION,
            report=usage.report,
            lease=7,
            granted=Micros(1_000_000),
            given=Micros(0),
            ends_at=now + timedelta(hours=1),
            verdict=BudgetVerdict.GRANTED,
            throttle=0.0 if terms.campaign_id == market.campaigns[2].config.campaign_id else 1.0,
        )
        delivery.receive(answer, now, 1.0)
    delivery.apply_changes()

    offers = [offer for _ in range(9) for offer in delivery.serve(Arrival(second, 0, *[0.5] * 4), now)]

    assert [offer.lease for offer in offers] == [7, 7]


@pytest.mark.parametrize("delivery", [Delivery.AUCTION, Delivery.DIRECT])
def test_targeting_and_dates_decide_as_in_the_product(delivery: Delivery) -> None:
    rule: dict[str, Any] = {"rule_type": "hour_of_day", "operator": "between", "value": [8, 12]}
    market = a_market(
        msgspec.convert(
            {"name": "Mornings", "bid": 2, "starts": "2026-03-03", "targeting": [rule]}, CampaignPart
        ),
        placements=(a_placement(delivery=delivery),),
    )

    hours = simulate(market, days=2).campaigns[1].impressions

    assert [hour for hour, count in enumerate(hours) if count] == list(range(HOURS + 8, HOURS + 13))


def test_a_sample_of_the_requests_has_the_same_proportions() -> None:
    market = a_market(
        a_campaign(daily_budget=3.0, pacing=PacingStrategy.ACCELERATED),
        placements=(a_placement(requests_a_day=6_000.0, floor=2.0),),
    )

    whole, sample = simulate(market), simulate(thin_out(market, 0.2))

    assert sample.requests < 0.3 * whole.requests
    assert sample.scale * shown(sample, 1) == pytest.approx(shown(whole, 1), rel=0.05)


@pytest.mark.parametrize(("strategy", "target"), [(BidStrategy.PACER, None), (BidStrategy.FLEET, 0.02)])
def test_bid_strategies_multiply_bids_as_in_the_product(strategy: BidStrategy, target: float | None) -> None:
    rivals = RivalsPart(share=1.0, median=1.0, spread=0.6)
    placement = a_placement(requests_a_day=3_000.0, rivals=rivals)
    fields: dict[str, Any] = {"bid": 4.0, "daily_budget": 0.5, "click_rate": 0.3, "target_cpa": target}

    fixed, multiplied = (
        simulate(a_market(a_campaign(bid_strategy=one, **fields), placements=(placement,)), days=2)
        for one in (BidStrategy.FIXED, strategy)
    )

    # For the same budget more impressions: it buys where they are cheap.
    assert spent_micros(multiplied, 1, day=1) <= 0.5 * MICROS_PER_UNIT
    assert shown(multiplied, 1) > 1.05 * shown(fixed, 1)


def test_click_rates_are_learned_where_a_placement_is_scored_so() -> None:
    fields: dict[str, Any] = {"bid_type": BidType.CPC, "pacing": PacingStrategy.ACCELERATED}
    campaigns = (
        a_campaign("Dull", bid=0.2, click_rate=0.002, **fields),
        a_campaign("Bright", bid=0.15, click_rate=0.1, **fields),
    )
    guessed, learned = (
        simulate(
            a_market(*campaigns, placements=(a_placement(requests_a_day=3_000.0, scoring=scoring),)), days=2
        )
        for scoring in (HEURISTIC, LEARNED)
    )

    # Without a model all ads are as good, and the higher bid wins.
    assert shown(guessed, 2) == 0
    assert shown(learned, 2) > 0.7 * learned.requests
