"""Catalogs of auctioned placements; half of the campaigns are paced out or capped, as late in the day."""

from random import Random  # noqa: TID251 - seeded, and of the bench alone
from typing import Final

import msgspec

from adloom.auction.bid import BidType
from adloom.auction.score import Signals
from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.serving.index.rows import (
    AssignmentRow,
    Caps,
    Delivery,
    FrequencyLimit,
    PlacementRow,
    Snapshot,
    compute_price,
)
from adloom.targeting.context import Context
from bench.scale.catalog import SEED, CatalogSize, build_catalog, build_contexts

PLACEMENTS: Final = 100
TYPES: Final = ("feed", "story", "banner", "sidebar")
CAMPAIGNS_AN_ADVERTISER: Final = 10
PACED_OUT: Final = "pacing"
CAPPED: Final = "impression_cap"
_FLOORS: Final = (0, 100_000, 500_000)
_FREQUENCY: Final = (FrequencyLimit(Window.DAY, 3), FrequencyLimit(Window.LIFETIME, 20))


def build_auction_catalog(campaigns: int, *, has_frequency_caps: bool = True) -> Snapshot:
    """Each campaign has one banner on one placement; half of the banners have frequency caps."""
    chance = Random(SEED)  # noqa: S311 - not a secret
    snapshot = build_catalog(CatalogSize(campaigns, PLACEMENTS, campaigns))
    return msgspec.structs.replace(
        snapshot,
        placements=[_add_auction(row) for row in snapshot.placements],
        assignments=[
            _add_bid(row, chance, has_frequency_caps=has_frequency_caps) for row in snapshot.assignments
        ],
    )


def choose_half(campaigns: int) -> dict[str, frozenset[int]]:
    """Choose campaigns that are paced out or capped: half of all, independent of their bids."""
    chance = Random(SEED + 1)  # noqa: S311 - not a secret
    out = chance.sample(range(campaigns), campaigns // 2)
    return {PACED_OUT: frozenset(out[::2]), CAPPED: frozenset(out[1::2])}


def build_requests(count: int) -> list[tuple[Context, Signals]]:
    """Build requests of visitors; one in ten has high intent."""
    chance = Random(SEED + 2)  # noqa: S311 - not a secret
    return [(context, _build_signals(context, chance)) for context in build_contexts(count)]


def _add_auction(row: PlacementRow) -> PlacementRow:
    return msgspec.structs.replace(
        row,
        delivery=Delivery.AUCTION,
        placement_type=TYPES[row.key % len(TYPES)],
        floor=Micros(_FLOORS[row.key % len(_FLOORS)]),
    )


def _add_bid(row: AssignmentRow, chance: Random, *, has_frequency_caps: bool) -> AssignmentRow:
    """Add a bid from 0.10 units per thousand impressions, in whole cents; most bids are low."""
    cents = 10 + int(chance.expovariate(1 / 150))
    bid_type = chance.choice(list(BidType))
    # At a CTR of 2 % a click is worth as much as 50 impressions.
    bid = Micros(cents * (10_000 if bid_type is BidType.CPM else 500))
    return msgspec.structs.replace(
        row,
        advertiser_key=row.campaign_key // CAMPAIGNS_AN_ADVERTISER + 1,
        bid_type=bid_type,
        bid=bid,
        price=compute_price(bid_type, bid),
        is_limited=True,
        caps=Caps(1_000_000, None) if chance.random() < 1 / 2 else None,
        frequency=_FREQUENCY if chance.random() < 1 / 2 and has_frequency_caps else (),
        video_url="https://cdn.example/a.mp4" if chance.random() < 1 / 3 else None,
    )


def _build_signals(context: Context, chance: Random) -> Signals:
    return Signals(
        placement_type="feed",
        segment="high-intent" if chance.random() < 1 / 10 else context.segment,
        last_purchase_days=chance.choice([None, 7, 60]),
    )
