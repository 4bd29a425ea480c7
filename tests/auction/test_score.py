"""The heuristic: a base CTR by placement type, boosts that multiply it, and a quality by format."""

from typing import Any

import pytest

from adloom.auction.score import Heuristic, Signals, rate_quality
from tests.auction.bids import a_bid
from tests.support.for_each import for_each


class AnAd:
    campaign_key = banner_key = placement_key = 1
    format = "video"


@for_each(
    ("placement_type", "signals", "ctr"),
    [
        ("story", {}, 18_000_000),
        ("banner", {}, 12_000_000),
        ("feed", {}, 20_000_000),
        ("anything", {}, 20_000_000),
        ("feed", {"segment": "high-intent"}, 25_000_000),
        ("feed", {"segment": "others"}, 20_000_000),
        ("feed", {"last_purchase_days": 0}, 22_000_000),
        ("feed", {"last_purchase_days": 14}, 22_000_000),
        ("feed", {"last_purchase_days": 15}, 20_000_000),
        ("feed", {"last_purchase_days": -1}, 20_000_000),
        ("story", {"segment": "high-intent", "last_purchase_days": 3}, 24_750_000),
        ("banner", {"segment": "high-intent", "last_purchase_days": 3}, 16_500_000),
    ],
)
def test_the_heuristic_multiplies_the_base_ctr_by_boosts(
    placement_type: str, signals: dict[str, Any], ctr: int
) -> None:
    scorer = Heuristic().build_scorer(Signals(placement_type=placement_type, **signals))

    assert scorer.is_uniform
    assert scorer.predict_ctr(AnAd()) == scorer.ctr_max == ctr


@pytest.mark.parametrize(
    ("ad_format", "quality"), [("single_image", 10_000), ("video", 11_000), ("x", 9_500)]
)
def test_quality_depends_on_the_format(ad_format: str, quality: int) -> None:
    assert rate_quality(ad_format) == quality


def test_a_campaign_without_an_advertiser_pays_for_itself() -> None:
    assert a_bid("1", number=7).payer != a_bid("1", number=8).payer
    assert a_bid("1", number=7, advertiser_key=3).payer == a_bid("1", number=8, advertiser_key=3).payer
