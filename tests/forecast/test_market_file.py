"""Markets that people write, the changes that they try, and what they are told about mistakes."""

import tomllib
from datetime import UTC, datetime

import msgspec
import pytest
from msgspec import UNSET

from adloom.bidding.window import BidStrategy
from adloom.core.money import MICROS_PER_UNIT
from adloom.forecast.changes import MarketChangeError, apply_changes, parse_change
from adloom.forecast.file.market_file import read_market
from adloom.forecast.file.parts import MarketFileError
from adloom.forecast.market import HOURS_A_WEEK
from adloom.schedule.pacing import PacingStrategy
from adloom.serving.index.rows import AssignmentStatus, Delivery
from adloom.targeting.rules import parse_rule
from tests.forecast.markets import a_campaign, a_market, a_placement

MARKET = b"""
weekday = [0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
[[placements]]
slug = "feed"
requests_a_day = 700
[[visitors]]
share = 3
country = "DE"
[[visitors]]
country = "FR"
[[campaigns]]
name = "Shoes"
bid = 2.5
daily_budget = 10
starts = 2026-03-02
copies = 3
bid_spread = 0.5
"""


def test_a_file_becomes_a_market() -> None:
    market = read_market(MARKET, is_json=False)

    assert [one.name for one in market.campaigns] == ["Shoes 1", "Shoes 2", "Shoes 3"]
    assert [row.bid for row in market.assignments][1] == 2_500_000
    assert market.requests_a_week == pytest.approx(4_900)
    german, french = market.cells
    assert sum(german.hours) == pytest.approx(3 * sum(french.hours))
    assert len(german.hours) == HOURS_A_WEEK
    assert german.hours[8] == pytest.approx(2 * german.hours[12])
    assert german.hours[0] == 0


def test_json_says_the_same_as_toml() -> None:
    as_json = msgspec.json.encode(tomllib.loads(MARKET.decode()))

    assert read_market(as_json, is_json=True) == read_market(MARKET, is_json=False)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (MARKET.replace(b"bid = 2.5", b"bid = -1"), "$.campaigns[0].bid"),
        (MARKET.replace(b"bid = 2.5", b"bidd = 2"), "bidd"),
        (MARKET.replace(b"copies", b"advertiser = 'nobody'\ncopies"), "nobody"),
        (MARKET.replace(b"copies", b"placements = ['no-such']\ncopies"), "no-such"),
        (MARKET.replace(b"copies", b"zone = 'Mars/Olympus'\ncopies"), "Mars/Olympus"),
        (MARKET.replace(b"starts = 2026-03-02", b"starts = '20260302'"), "20260302"),
        (MARKET.replace(b"slug =", b"slug ="[:2]), "line 4"),
        (b"\xff", "cannot be read"),
    ],
    ids=["negative", "unknown", "advertiser", "placement", "zone", "day", "syntax", "bytes"],
)
def test_a_file_that_is_no_market_says_what_is_wrong(wrong: bytes, said: str) -> None:
    with pytest.raises(MarketFileError, match=said.replace("$", r"\$").replace("[", r"\[")):
        read_market(wrong, is_json=False)


def test_changes_are_read_as_people_write_them() -> None:
    market = a_market(a_campaign("Shoes: spring", bid=2.0, daily_budget=10))

    change = parse_change(
        "campaign Shoes: spring: bid +20 %; budget x1.5; total budget 99.5; ends 2026-04-01; pacing accelerated;"
        " strategy pacer; target 5; country in DE, fr",
        market,
    )

    assert change.bid == 2_400_000
    assert change.daily_budget == 15 * MICROS_PER_UNIT
    assert change.total_budget == 99.5 * MICROS_PER_UNIT
    assert change.ends_at == datetime(2026, 4, 1, tzinfo=UTC)
    assert change.pacing is PacingStrategy.ACCELERATED
    assert (change.bid_strategy, change.target) == (BidStrategy.PACER, 5 * MICROS_PER_UNIT)
    assert change.rules == (parse_rule("country", "in", ["DE", "FR"]),)
    assert change.starts_at is UNSET


@pytest.mark.parametrize(
    "sentence",
    [
        "raise the bid",
        "campaign Hats: bid +20 %",
        "campaign Shoes: bid a lot",
        "campaign Shoes: bid 0",
        "campaign Shoes: total budget +20 %",
        "campaign Shoes: ends 2026-W14-3",
        "campaign Shoes: starts 2027-01-01; ends 2026-01-01",
        "campaign Shoes: pacing fast",
        "campaign Shoes: planet in Mars",
    ],
    ids=["sentence", "campaign", "bid", "free", "relative", "day", "days", "pacing", "rule"],
)
def test_a_change_that_cannot_be_read_says_how_to_write_it(sentence: str) -> None:
    with pytest.raises(MarketChangeError):
        parse_change(sentence, a_market())


def test_a_change_is_of_its_campaign_only() -> None:
    market = a_market(a_campaign(), a_campaign("Hats"))

    changed = apply_changes(
        market, [parse_change("campaign Shoes: bid 3; budget 7; ends 2026-01-01", market)]
    )

    shoes, hats = changed.campaigns
    assert shoes.config.daily_budget == 7 * MICROS_PER_UNIT
    assert not shoes.config.is_running
    assert hats == market.campaigns[1]
    assert [(row.bid, row.is_limited) for row in changed.assignments] == [
        (3_000_000, True),
        (2_000_000, False),
    ]


def test_a_direct_bid_under_the_floor_ends_an_assignment_and_a_higher_one_revives_it() -> None:
    market = a_market(a_campaign(bid=2.0), placements=(a_placement(delivery=Delivery.DIRECT, floor=1.0),))

    low = apply_changes(market, [parse_change("campaign Shoes: bid 0.5", market)])
    high = apply_changes(low, [parse_change("campaign Shoes: bid 1.5", low)])

    assert low.assignments[0].status is AssignmentStatus.FLOOR
    assert high.assignments[0].status is AssignmentStatus.LIVE
