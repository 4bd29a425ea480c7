"""Generated catalogs of any size, with rules on all nine dimensions, the same in every run."""

from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - seeded, and of the bench alone
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.serving.index.rows import AssignmentRow, OfferPrice, PlacementRow, Snapshot
from adloom.targeting.context import Context
from adloom.targeting.rules import Rule, parse_rule

SEED: Final = 20_261_115
COUNTRIES: Final = [first + second for first in "ABCDEFGHIJ" for second in "ABCDE"]
LANGUAGES: Final = ["de", "en", "fr", "es", "it", "nl", "pl", "pt", "sv", "da"]
DEVICES: Final = ["mobile", "tablet", "desktop"]
SITES: Final = 100
SEGMENTS: Final = 50
SLOTS: Final = 1  # The same number of banners in every answer, whatever the size of the catalog.
COST: Final = Micros(1_000)
SOON: Final = datetime(2030, 1, 1, tzinfo=UTC)


class CatalogSize(msgspec.Struct, frozen=True):
    """The size of a catalog; every campaign has its own banner."""

    campaigns: int
    placements: int
    assignments: int


def build_catalog(size: CatalogSize) -> Snapshot:
    chance = Random(SEED)  # noqa: S311 - not a secret
    pools = _build_rule_pools(chance)
    campaigns = [
        (CampaignId(build_id(chance)), BannerId(build_id(chance)), _choose_rules(chance, pools))
        for _ in range(size.campaigns)
    ]
    return Snapshot(
        version=1,
        placements=[_build_placement(number, build_id(chance)) for number in range(size.placements)],
        assignments=[
            _build_assignment(number, chance.randrange(size.placements), campaigns[banner], banner)
            for number in range(size.assignments)
            for banner in [number % size.campaigns]
        ],
        banner_ids=[banner_id for _, banner_id, _ in campaigns],
        campaign_ids=[campaign_id for campaign_id, _, _ in campaigns],
    )


def add_budgets(snapshot: Snapshot) -> Snapshot:
    """Give every offer a price, and every campaign a budget."""
    priced = [
        msgspec.structs.replace(row, price=OfferPrice(COST), is_limited=True) for row in snapshot.assignments
    ]
    return msgspec.structs.replace(snapshot, assignments=priced)


def build_contexts(count: int) -> list[Context]:
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


def build_id(chance: Random) -> UUID:
    """Build an id in the product's format."""
    return UUID(int=(chance.getrandbits(48) << 80) | (0x7 << 76) | (0b10 << 62) | chance.getrandbits(62))


def build_assignment(chance: Random, number: int) -> AssignmentRow:
    """Build an assignment of a campaign without rules."""
    return _build_assignment(0, 0, (CampaignId(build_id(chance)), BannerId(build_id(chance)), ()), number)


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
    )


def _build_assignment(
    number: int, placement: int, campaign: tuple[CampaignId, BannerId, tuple[Rule, ...]], banner: int
) -> AssignmentRow:
    campaign_id, banner_id, rules = campaign
    return AssignmentRow(
        placement_key=placement,
        campaign_id=campaign_id,
        banner_id=banner_id,
        campaign_key=banner,
        banner_key=banner,
        starts_at=None,
        # A third of all campaigns have an end.
        ends_at=SOON + timedelta(hours=banner) if banner % 3 == 0 else None,
        rules=rules,
        display_order=number % 5,
        weight=100,
        campaign_priority=0,
        banner_priority=0,
        is_fallback=False,
        fallback_priority=None,
        title=f"Autumn sale {banner}",
        headline="Up to 30 % off everything warm",
        subheadline="Until Sunday",
        description="Coats, jackets and boots for the autumn, in all sizes and many colours.",
        primary_image_url=f"https://cdn.example/banners/autumn-sale-{banner}-1200x400.webp",
        primary_image_alt="A wool coat on a chair",
        mobile_image_url=f"https://cdn.example/banners/autumn-sale-{banner}-600x400.webp",
        video_url=None,
        media_variants={},
        cta_label="See the sale",
        cta_url=f"https://shop.example/sale/{banner}?ref=adloom",
        cta_open_new_tab=False,
        utm_source="adloom",
        utm_medium="banner",
        utm_campaign="autumn",
        utm_content=None,
        bg_color=None,
        transition_duration_ms=None,
    )
