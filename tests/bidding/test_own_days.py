"""Own auctions become market days, and what is learned from them is kept only if it wins."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import msgspec
import numpy as np
import pytest
from rich.console import Console

from adloom.bidding.shipped import decode_fleet, load_nets, read_shipped
from adloom.bidding.training.fleet import TrainingPlan
from adloom.bidding.training.market_days import Opportunity, build_tables, generate_tables
from adloom.bidding.window import BidRules, BidStrategy
from adloom.cli.bids import answer_lines
from adloom.cli.learn.own_auctions import keep_if_better, list_opportunities, parse_days
from adloom.cli.learn.recorded_days import build_archive
from adloom.cli.options import LearnCommandError
from adloom.events.auction_log.learning_store import (
    RecordedAuction,
    TargetedCampaign,
    compute_conversion_rate,
)
from adloom.events.auction_log.row import BidView

OURS, RIVAL = UUID(int=1), UUID(int=2)


def a_bid(campaign: UUID, *, bid: float, ecpm: float, outcome: str, kind: str = "cpm") -> BidView:
    return BidView(
        ad_id=campaign,
        campaign_id=campaign,
        bid=bid,
        bid_type=kind,
        bid_amount=None,
        predicted_ctr=0.02,
        quality_score=1.0,
        ecpm=ecpm,
        outcome=outcome,
    )


def opportunities_of(*bids: BidView, floor: str = "0", rate: float = 1.0) -> list[Opportunity]:
    auction = RecordedAuction(datetime(2026, 11, 1, 6, 20, tzinfo=UTC), Decimal(floor), bids)
    seats = {OURS: (0, TargetedCampaign(OURS, 100.0, 2.0, rate))}
    return list(list_opportunities(auction, seats, day=3, weight=2.0))


def test_a_lost_auction_says_what_would_have_won_it_and_at_what_price() -> None:
    [found] = opportunities_of(
        a_bid(OURS, bid=4.0, ecpm=4.0, outcome="lost"), a_bid(RIVAL, bid=6.0, ecpm=6.0, outcome="won")
    )

    assert (found.day, found.window, found.seat, found.weight) == (3, 25, 0, 2.0)
    assert found.needed == 1.5
    assert found.cost == pytest.approx(0.006)
    assert found.value == 0.02


def test_where_clicks_bring_conversions_those_are_the_value() -> None:
    [found] = opportunities_of(a_bid(OURS, bid=4.0, ecpm=4.0, outcome="won"), rate=0.05)

    assert found.value == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("conversions", "clicks", "rate"),
    [(0, 500, 1.0), (9, 500, 1.0), (10, 500, 0.02), (30, 10, 1.0), (10, 0, 1.0)],
)
def test_a_few_conversions_say_nothing(conversions: int, clicks: int, rate: float) -> None:
    assert compute_conversion_rate(conversions, clicks) == rate


def test_a_line_of_counted_conversions_is_decided_by_them() -> None:
    line = {
        "campaign": "a", "window": 40, "windows": 96, "budget": 3000, "remaining": 1500, "target": 90, "cost": 1500,
        "windowCost": 40, "opportunities": 100, "wins": 50, "trafficShare": 0.01, "trafficLeft": 0.5,
        "lastMultiplier": 1,
    }  # fmt: skip
    predicted = {"value": 2, "windowValue": 0}
    counted = {"conversions": 30, "windowConversions": 1, **predicted}
    lines = [
        msgspec.json.encode(line | more)
        for more in (predicted, counted, {"value": 30, "windowValue": 1}, predicted | {"conversions": 0})
    ]

    few, with_counts, as_value, without = (
        next(answer_lines([one], BidStrategy.FLEET, BidRules(), load_nets())) for one in lines
    )

    assert with_counts == as_value != few == without


def test_a_bid_per_click_pays_by_its_predicted_clicks() -> None:
    [found] = opportunities_of(
        a_bid(OURS, bid=0.5, ecpm=10.0, outcome="won", kind="cpc"),
        a_bid(RIVAL, bid=5.0, ecpm=5.0, outcome="lost"),
    )

    assert found.needed == 0.5
    assert found.cost == pytest.approx(0.005)


def test_the_floor_must_be_reached_and_removed_bids_are_no_rivals() -> None:
    [found] = opportunities_of(
        a_bid(OURS, bid=4.0, ecpm=4.0, outcome="won"),
        a_bid(RIVAL, bid=9.0, ecpm=9.0, outcome="removed"),
        floor="1",
    )

    assert found.needed == 0.25


def test_the_tables_have_what_each_multiplier_would_have_won() -> None:
    found = [Opportunity(0, 5, 0, 0.5, 0.01, 0.1), Opportunity(0, 5, 0, 2.0, 0.04, 0.1)]

    tables = build_tables(found, [10.0], [0.19], days=2, held_out=1)

    row = tables["value"][0, 0, 5]
    at = {
        name: row[int(np.searchsorted(tables["multipliers"], one))]
        for name, one in (("low", 0.3), ("mid", 1.0), ("high", 3.0))
    }
    assert at == pytest.approx({"low": 0.0, "mid": 0.1, "high": 0.2})
    # Money is scaled: the median target is 95.
    assert tables["target"].tolist() == pytest.approx([95.0])
    assert tables["cost"][0, 0, 5, -1] == pytest.approx(0.05 * 500)


@pytest.mark.parametrize("asked", ["", "3d", "400d", "month"])
def test_days_that_make_no_sense_are_refused(asked: str) -> None:
    with pytest.raises(LearnCommandError, match="how many days"):
        parse_days(asked)


def test_refined_weights_that_do_not_win_are_not_written(tmp_path: Path) -> None:
    archive = build_archive("days", generate_tables(days=2, seats=4, seed=3, train=1))
    shipped = decode_fleet(read_shipped("fleet") or b"")

    kept = keep_if_better(Console(), archive, shipped, shipped, TrainingPlan(steps=1), tmp_path, [0.5])

    assert not kept
    assert list(tmp_path.iterdir()) == []
