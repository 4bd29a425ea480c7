"""Random markets with so few different values that ties, floors, own bids and exclusions coincide often."""

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, NamedTuple

import msgspec
import numpy as np

from adloom.auction.bid import BidType, Ctr
from adloom.auction.features import SLOTS
from adloom.auction.learned import LEARNED, LearnedScoring, VisitorKind
from adloom.auction.model import Model, find_weight_max
from adloom.auction.score import HEURISTIC, AdFeatures, FlatScorer, Signals, Strengths
from adloom.core.ids import CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.serving.index.rows import (
    AssignmentRow,
    AssignmentStatus,
    Delivery,
    FrequencyLimit,
    PlacementRow,
    Snapshot,
    compute_price,
)
from adloom.targeting.context import Context
from adloom.targeting.rules import Rule, parse_rule
from tests.support.rows import a_placement_row, an_assignment_row, an_id

NOW: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)
ZONES: Final = ("UTC", "Asia/Kolkata")
TYPES: Final = ("feed", "story")
UNEVEN: Final = "uneven"
RARE_CLICK: Final = "rare click"
CAMPAIGNS_MAX: Final = 14
BANNERS_MAX: Final = 3
AMOUNTS: Final = (
    1,
    2,
    3,
    60,
    61,
    9_999,
    10_000,
    10_001,
    20_000,
    200_000,
    400_000,
    1_000_000,
    1_000_001,
    2_000_000,
)
FLOORS: Final = (0, 0, 0, 1, 10_000, 190_000, 400_000, 1_000_000)
RULES: Final = (
    parse_rule("device", "in", ["mobile"]),
    parse_rule("country", "not_in", ["DE"]),
    parse_rule("country", "in", ["DE", "FR"]),
    parse_rule("hour_of_day", "between", [10, 14]),
    parse_rule("user_segment", "in", ["high-intent"]),
    parse_rule("referrer_domain", "in", ["example.com"]),
)


class UnevenPolicy:
    """A policy whose CTRs differ by ad and rarely reach the bound."""

    name: str = UNEVEN
    version: int = 1
    strengths: tuple[Strengths, ...] = ()

    def build_scorer(self, signals: Signals) -> "UnevenScorer":
        return UnevenScorer(Ctr(40_000_000 if signals.segment else 400_000))


class UnevenScorer(NamedTuple):
    """Predicts the bound, or a fraction of it."""

    ctr_max: Ctr
    is_uniform: bool = False
    ranked: None = None

    def predict_ctr(self, ad: AdFeatures) -> Ctr:
        parts = (ad.campaign_key * 7 + ad.banner_key * 5 + ad.placement_key * 3 + len(ad.format)) % 5
        return Ctr(self.ctr_max * parts // 4)


class RareClickPolicy:
    """A policy with so low CTRs that different bids have the same eCPM."""

    name: str = RARE_CLICK
    version: int = 1
    strengths: tuple[Strengths, ...] = ()

    def build_scorer(self, signals: Signals) -> FlatScorer:
        del signals
        return FlatScorer(Ctr(400_000))


def build_learned_policy() -> LearnedScoring:
    """Build a policy that ranks ads; some of them exceed its bounds."""
    drawn = np.random.default_rng(1).normal(0, 0.3, SLOTS)
    weights = array("f", drawn.astype(np.float32).tobytes())
    model = Model(version=1, weights=weights, highest=0.6, crossing=0.3, weight_max=find_weight_max(weights))
    return LearnedScoring(model, kinds=[VisitorKind(None, None)])


class RandomRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a random market."""

    placement_type: str
    slug: bytes | None
    context: Context  # In UTC.
    signals: Signals
    seen_enough: frozenset[int]
    unreserved: frozenset[int]


def build_market(chance: Random) -> Snapshot:
    placements = [_build_placement(chance, key) for key in range(1, chance.randint(1, 4) + 1)]
    # Few different bids make many ties, also by rounding.
    amounts = chance.sample(AMOUNTS, chance.randint(1, 4))
    assignments: list[AssignmentRow] = []
    for campaign_key in range(1, chance.randint(1, CAMPAIGNS_MAX) + 1):
        template = _build_campaign(chance, campaign_key, amounts)
        for banner_key in chance.sample(range(1, BANNERS_MAX + 1), chance.randint(1, BANNERS_MAX)):
            video_url = chance.choice([None, "https://cdn.example/a.mp4"])
            assignments += [
                msgspec.structs.replace(
                    template, placement_key=row.key, banner_key=banner_key, video_url=video_url
                )
                for row in placements
                if chance.random() < 2 / 3
            ]
    return Snapshot(version=1, placements=placements, assignments=assignments, banner_ids=[], campaign_ids=[])


def build_request(chance: Random, placements: Sequence[PlacementRow]) -> RandomRequest:
    placement = chance.choice(placements)
    segment = chance.choice([None, "high-intent", "others"])
    return RandomRequest(
        placement_type=placement.placement_type,
        slug=placement.slug.encode() if chance.random() < 1 / 3 else None,
        context=Context(
            device=chance.choice(["mobile", "desktop"]),
            country=chance.choice([None, "DE", "FR"]),
            language=None,
            is_logged_in=False,
            is_new_visitor=False,
            referrer_domain=chance.choice([None, "www.example.com"]),
            segment=segment,
            hour=chance.randrange(24),
            day=0,
        ),
        signals=Signals(
            placement_type=placement.placement_type,
            segment=segment,
            last_purchase_days=chance.choice([None, 3, 30]),
        ),
        seen_enough=_choose_some(chance, BANNERS_MAX),
        unreserved=_choose_some(chance, CAMPAIGNS_MAX),
    )


def _choose_some(chance: Random, most: int) -> frozenset[int]:
    if chance.random() < 2 / 3:
        return frozenset()
    return frozenset(chance.sample(range(1, most + 1), 1))


def _build_placement(chance: Random, key: int) -> PlacementRow:
    return a_placement_row(
        key=key,
        id=PlacementId(an_id(key)),
        slug=f"slot-{key}",
        max_banners=1,
        is_active=chance.random() < 9 / 10,
        delivery=chance.choice([Delivery.AUCTION] * 9 + [Delivery.DIRECT]),
        placement_type=chance.choice(TYPES),
        timezone=chance.choice(ZONES),
        floor=Micros(chance.choice(FLOORS)),
        scoring=chance.choice([HEURISTIC, HEURISTIC, UNEVEN, RARE_CLICK, LEARNED]),
    )


def _build_campaign(chance: Random, key: int, amounts: Sequence[int]) -> AssignmentRow:
    bid = Micros(chance.choice(amounts)) if chance.random() < 9 / 10 else None
    bid_type = chance.choice(list(BidType))
    rules: list[Rule] = chance.sample(RULES, chance.choice([0, 0, 1, 2]))
    return an_assignment_row(
        campaign_id=CampaignId(an_id(1_000 + key)),
        campaign_key=key,
        status=AssignmentStatus.LIVE if chance.random() < 9 / 10 else AssignmentStatus.CAMPAIGN_PAUSED,
        starts_at=chance.choice([None, None, NOW, NOW + timedelta(hours=1)]),
        ends_at=chance.choice([None, None, NOW, NOW + timedelta(hours=2)]),
        rules=tuple(rules),
        advertiser_key=chance.choice([None, 1, 2, 3]),
        bid_type=bid_type,
        bid=bid,
        price=compute_price(bid_type, bid),
        frequency=(FrequencyLimit(Window.DAY, 1),),
    )
