"""Generated catalogs of auctions, of any size, with rules on all nine dimensions, the same in every run."""

from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - seeded, and of the bench alone
from typing import Final
from uuid import UUID

import msgspec

from adloom.auction.bid import BidType
from adloom.auction.score import Signals
from adloom.budgets.messages import BudgetVerdict, LeaseAnswer
from adloom.core.clock import SystemClock
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.index import Index
from adloom.serving.index.rows import (
    AssignmentRow,
    Caps,
    Delivery,
    FrequencyLimit,
    PlacementRow,
    Snapshot,
    compute_price,
)
from adloom.serving.leases.local_leases import LocalLeases
from adloom.targeting.context import Context
from adloom.targeting.rules import Rule, parse_rule

SEED: Final = 20_261_115
COUNTRIES: Final = [first + second for first in "ABCDEFGHIJ" for second in "ABCDE"]
LANGUAGES: Final = ["de", "en", "fr", "es", "it", "nl", "pl", "pt", "sv", "da"]
DEVICES: Final = ["mobile", "tablet", "desktop"]
SITES: Final = 100
SEGMENTS: Final = 50
SLOTS: Final = 1  # The same number of banners in every answer, whatever the size of the catalog.
SOON: Final = datetime(2030, 1, 1, tzinfo=UTC)
LEASE_MICROS: Final = Micros(10**15)
LEASE_IMPRESSIONS: Final = 10**9

AUCTION_PLACEMENTS: Final = 100
AUCTION_TYPES: Final = ("feed", "story", "banner", "sidebar")
CAMPAIGNS_AN_ADVERTISER: Final = 10
_FLOORS: Final = (0, 100_000, 500_000)
_FREQUENCY: Final = (FrequencyLimit(Window.DAY, 3), FrequencyLimit(Window.LIFETIME, 20))


def lease_all(states: PlacementStates, leases: LocalLeases, index: Index) -> None:
    """Grant every campaign that needs a lease more than a bench can offer, in place of a worker."""
    leases.update({key: placement.terms for key, placement in index.by_key.items()}, at=0.0)
    second, at = int(SystemClock().now().timestamp()), 0.0
    while leases.registry.list_excluded():
        at += 1.0
        said = leases.collect_reports(second=second, at=at, most=1_000, is_wanted=lambda _: True)
        for terms, usage in said:
            answer = LeaseAnswer(
                campaign_id=terms.campaign_id,
                session=usage.session,
                report=usage.report,
                lease=1,
                granted=LEASE_MICROS,
                given=Micros(0),
                impressions_granted=LEASE_IMPRESSIONS,
                ends_at=datetime.max.replace(tzinfo=UTC),
                verdict=BudgetVerdict.GRANTED,
            )
            leases.on_answer(answer, second=second, at=at)
    states.mark_changed(leases.take_changes())


def _build_contexts(count: int) -> list[Context]:
    """Build the contexts of visitors."""
    chance = Random(SEED)  # noqa: S311 - not a secret
    return [
        Context(
            device=chance.choice(DEVICES),
            country=chance.choice(COUNTRIES),
            language=chance.choice(LANGUAGES),
            is_logged_in=chance.random() < 1 / 3,
            is_new_visitor=chance.random() < 1 / 2,
            referrer_domain=chance.choice([None, f"www.site{chance.randrange(SITES)}.example"]),
            segment=chance.choice([None, f"segment{chance.randrange(SEGMENTS)}"]),
            hour=chance.randrange(24),
            day=chance.randrange(7),
        )
        for _ in range(count)
    ]


def build_auction_catalog(campaigns: int, *, has_frequency_caps: bool = True) -> Snapshot:
    """Each campaign has one banner on one placement; half of the banners have frequency caps."""
    chance = Random(SEED)  # noqa: S311 - not a secret
    pools = _build_rule_pools(chance)
    ids = [
        (CampaignId(build_id(chance)), BannerId(build_id(chance)), _choose_rules(chance, pools))
        for _ in range(campaigns)
    ]
    placements = [_build_placement(number, build_id(chance)) for number in range(AUCTION_PLACEMENTS)]
    assignments = [
        _build_assignment(number, chance.randrange(AUCTION_PLACEMENTS), campaign)
        for number, campaign in enumerate(ids)
    ]
    chance = Random(SEED)  # noqa: S311 - not a secret
    frequency = _FREQUENCY if has_frequency_caps else ()
    return Snapshot(
        version=1,
        placements=placements,
        assignments=[_add_bid(row, chance, frequency) for row in assignments],
        banner_ids=[banner_id for _, banner_id, _ in ids],
        campaign_ids=[campaign_id for campaign_id, _, _ in ids],
    )


def choose_half(campaigns: int) -> dict[str, frozenset[int]]:
    """Choose campaigns that are paced out or capped, as late in the day: half of all, independent of their bids."""
    chance = Random(SEED + 1)  # noqa: S311 - not a secret
    out = chance.sample(range(campaigns), campaigns // 2)
    return {"pacing": frozenset(out[::2]), "impression_cap": frozenset(out[1::2])}


def build_auction_requests(count: int) -> list[tuple[Context, Signals]]:
    """Build requests of visitors; one in ten has high intent."""
    chance = Random(SEED + 2)  # noqa: S311 - not a secret
    return [
        (
            context,
            Signals(
                placement_type="feed",
                segment="high-intent" if chance.random() < 1 / 10 else context.segment,
                last_purchase_days=chance.choice([None, 7, 60]),
            ),
        )
        for context in _build_contexts(count)
    ]


def _add_bid(row: AssignmentRow, chance: Random, frequency: tuple[FrequencyLimit, ...]) -> AssignmentRow:
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
        frequency=frequency if chance.random() < 1 / 2 else (),
        video_url="https://cdn.example/a.mp4" if chance.random() < 1 / 3 else None,
    )


def build_id(chance: Random) -> UUID:
    """Build an id in the product's format."""
    return UUID(int=(chance.getrandbits(48) << 80) | (0x7 << 76) | (0b10 << 62) | chance.getrandbits(62))


def _build_rule_pools(chance: Random) -> list[list[Rule]]:
    """Build rules of every dimension; campaigns choose from them, so many campaigns share rules."""
    return [
        [parse_rule("device", "in", chance.sample(DEVICES, 2)) for _ in range(6)],
        [parse_rule("country", "in", chance.sample(COUNTRIES, chance.randint(5, 25))) for _ in range(300)],
        [parse_rule("language", "in", chance.sample(LANGUAGES, chance.randint(2, 6))) for _ in range(60)],
        [parse_rule("user_segment", "not_in", [f"segment{number}"]) for number in range(SEGMENTS)],
        [parse_rule("login_state", "is", value) for value in (True, False)],
        [parse_rule("new_visitor", "is", value) for value in (True, False)],
        [parse_rule("hour_of_day", "between", [hour, (hour + 12) % 24]) for hour in range(24)],
        [parse_rule("day_of_week", "in", chance.sample(range(7), 5)) for _ in range(20)],
        [parse_rule("referrer_domain", "not_in", [f"site{number}.example"]) for number in range(SITES)],
    ]


def _choose_rules(chance: Random, pools: list[list[Rule]]) -> tuple[Rule, ...]:
    return tuple(chance.choice(pool) for pool in chance.sample(pools, chance.randint(1, 4)))


def _build_placement(number: int, placement_id: UUID) -> PlacementRow:
    return PlacementRow(
        key=number,
        id=PlacementId(placement_id),
        slug=f"slot-{number}",
        label=f"Slot {number}",
        layout_type="full_slider",
        max_banners=SLOTS,
        is_active=True,
        fallback_placeholder_url=None,
        allow_partial_render=False,
        delivery=Delivery.AUCTION,
        placement_type=AUCTION_TYPES[number % len(AUCTION_TYPES)],
        floor=Micros(_FLOORS[number % len(_FLOORS)]),
    )


def _build_assignment(
    number: int, placement: int, campaign: tuple[CampaignId, BannerId, tuple[Rule, ...]]
) -> AssignmentRow:
    campaign_id, banner_id, rules = campaign
    return AssignmentRow(
        placement_key=placement,
        campaign_id=campaign_id,
        banner_id=banner_id,
        campaign_key=number,
        banner_key=number,
        # A third of all campaigns have an end.
        ends_at=SOON + timedelta(hours=number) if number % 3 == 0 else None,
        rules=rules,
        display_order=number % 5,
        title=f"Autumn sale {number}",
        headline="Up to 30 % off everything warm",
        subheadline="Until Sunday",
        description="Coats, jackets and boots for the autumn, in all sizes and many colours.",
        primary_image_url=f"https://cdn.example/banners/autumn-sale-{number}-1200x400.webp",
        primary_image_alt="A wool coat on a chair",
        mobile_image_url=f"https://cdn.example/banners/autumn-sale-{number}-600x400.webp",
        cta_label="See the sale",
        cta_url=f"https://shop.example/sale/{number}?ref=adloom",
        utm_source="adloom",
        utm_medium="banner",
        utm_campaign="autumn",
    )
