"""Placements: the slots on pages."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from pydantic import AfterValidator, Field

from adloom.catalog.publisher import publishers
from adloom.catalog.site import Site, sites
from adloom.core.delivery import Delivery, Rotation
from adloom.core.errors import ConflictError, make_field_error, make_taken_error
from adloom.core.ids import PlacementId, PublisherId, SiteId
from adloom.core.money import Micros
from adloom.resource.access import PUBLISHER, Scope
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.names import NAME_COLUMNS
from adloom.resource.resource import Resource
from adloom.resource.shapes import Price, TimeZone
from adloom.runtime.http.api.shapes import (
    Flag,
    Name,
    Natural,
    Positive,
    Text,
    Text20,
    Text100,
    WebAddress,
    make_pattern_check,
)

SLUG_PATTERN: Final = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"
SLUG_LENGTH_MAX: Final = 100
PLACEMENT_TYPE_DEFAULT: Final = "banner"

Slug = Annotated[
    str,
    Field(max_length=SLUG_LENGTH_MAX),
    AfterValidator(
        make_pattern_check(
            SLUG_PATTERN, "must be small letters and digits, in words joined by single hyphens: home-hero"
        )
    ),
]
PlacementType = Annotated[Name, Field(max_length=50)]


class Layout(StrEnum):
    """How the banners of a placement are laid out."""

    FULL_SLIDER = "full_slider"
    FULL_STATIC = "full_static"
    HALF_PAIR = "half_pair"
    QUARTER_GRID = "quarter_grid"
    SIDEBAR_STACK = "sidebar_stack"
    SIDEBAR_SINGLE = "sidebar_single"
    INTERSTITIAL = "interstitial"
    POPUP = "popup"
    INLINE_CARD = "inline_card"
    STICKY_BAR = "sticky_bar"


class AuctionScoring(StrEnum):
    """How likely a click is thought to be in a placement's auctions."""

    HEURISTIC = "heuristic"
    LEARNED = "learned"


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """A slot on a page."""

    id: PlacementId
    publisher_id: PublisherId | None
    slug: Slug
    label: Name
    layout_type: Layout
    page_context: Text100 | None = None
    max_banners: Positive = 1
    recommended_width: Positive | None = None
    recommended_height: Positive | None = None
    recommended_aspect_ratio: Text20 | None = None
    notes: Text | None = None
    is_active: Flag = True
    sort_order: Natural = 0
    fallback_placeholder_url: WebAddress | None = None
    allow_partial_render: Flag = False
    delivery: Delivery = Delivery.DIRECT
    placement_type: PlacementType = PLACEMENT_TYPE_DEFAULT
    floor_cpm_micros: Annotated[
        Price, Field(alias="floorCpm", description="The least that a thousand impressions must be worth.")
    ] = Micros(0)
    is_open: Annotated[
        Flag, Field(description="Whether advertisers use it without being accepted first.")
    ] = False
    auction_scoring: AuctionScoring = AuctionScoring.HEURISTIC
    rotation: Annotated[
        Rotation,
        Field(
            description="Which of several banners of one display order is shown first: the one with the highest weight, one by chance and weight, or the one that is clicked more often."
        ),
    ] = Rotation.ORDERED
    timezone: TimeZone = "UTC"
    site_id: SiteId | None = None
    created_at: datetime
    updated_at: datetime


def check_slot(placement: Placement) -> Placement:
    """Return the placement, or raise where it is a contextual slot of no site."""
    if placement.delivery is Delivery.CONTEXTUAL and placement.site_id is None:
        raise make_field_error("siteId", "is required where delivery is contextual")
    return placement


NO_SITE = "names no site of the placement's publisher"
# Shared with other writers of placements: the site cannot be removed between the look at it and the write.
SITE_OF_PUBLISHER = """
    SELECT true FROM sites AS site LEFT JOIN publishers AS owner ON owner.id = site.publisher_id
     WHERE site.public_id = $1 AND owner.public_id IS NOT DISTINCT FROM $2
       FOR KEY SHARE OF site
"""
# What shows nothing any more holds no placement back: campaigns that are over, deleted banners, and what was refused.
HAS_ACTIVE_ASSIGNMENTS = """
    SELECT EXISTS (
        SELECT FROM banner_assignments AS assignment
          JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
          JOIN campaign_placements AS link USING (campaign_id, placement_id)
          JOIN banners AS banner ON banner.id = assignment.banner_id
          JOIN placements AS placement ON placement.id = assignment.placement_id
          LEFT JOIN advertisers AS advertiser ON advertiser.id = campaign.advertiser_id
         WHERE placement.public_id = $1 AND assignment.is_active AND NOT assignment.is_refused
           AND link.state <> 'refused' AND banner.deleted_at IS NULL
           AND campaign.deleted_at IS NULL AND campaign.status NOT IN ('ended', 'cancelled')
           AND advertiser.deleted_at IS NULL
    )
"""
# What the database removes in silence with a placement: its links, and their assignments first.
GOES_WITH_A_PLACEMENT = """
    SELECT 'assignment' AS noun, concat_ws('/', campaign.public_id, placement.public_id, banner.public_id) AS id,
           owner.public_id AS owner_id
      FROM banner_assignments AS assignment
      JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
      LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
      JOIN placements AS placement ON placement.id = assignment.placement_id
      JOIN banners AS banner ON banner.id = assignment.banner_id
     WHERE placement.public_id = $1
    UNION ALL
    SELECT 'link', concat_ws('/', campaign.public_id, placement.public_id), owner.public_id
      FROM campaign_placements AS link
      JOIN campaigns AS campaign ON campaign.id = link.campaign_id
      LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
      JOIN placements AS placement ON placement.id = link.placement_id
     WHERE placement.public_id = $1
"""


async def _check_site(write: CatalogWrite, _scope: Scope, before: Placement | None, after: Placement) -> None:
    if after.site_id is None or (before is not None and after.site_id == before.site_id):
        return
    if not await write.connection.fetchval(SITE_OF_PUBLISHER, after.site_id, after.publisher_id):
        raise make_field_error("siteId", NO_SITE, "There is no such site of this publisher.")


async def _check_unused(write: CatalogWrite, placement: Placement, _now: datetime) -> None:
    if await write.connection.fetchval(HAS_ACTIVE_ASSIGNMENTS, placement.id):
        raise ConflictError(
            "Banners are still assigned to this placement. Remove or deactivate their assignments first.",
            code="PLACEMENT_HAS_ACTIVE_ASSIGNMENTS",
        )
    for row in await write.connection.fetch(GOES_WITH_A_PLACEMENT, placement.id):
        subject = AuditSubject(row["noun"], row["id"], row["owner_id"])
        write.entries.append(NewAuditEntry(subject, "delete", {}))


def _refuse_site(field: str, named: Site | object, placement: Placement, _scope: Scope) -> str | None:
    if field == "site_id" and isinstance(named, Site) and named.publisher_id != placement.publisher_id:
        return NO_SITE
    return None


NAME_COLUMNS["deleted_placements"] = "slug"  # All that is kept of one that was removed.
placements = Resource(
    struct=Placement,
    name="placement",
    path="/admin/placements",
    tag="placements",
    table_name="placements",
    title="label",
    owner=PUBLISHER,
    references={"publisher_id": publishers, "site_id": sites},
    touches=(IndexedNoun.PLACEMENT, "id"),
    docs={
        "body": "A new placement. Without a publisher it belongs to the house.",
        "delete": "Remove a placement on which nothing is shown any more.",
    },
    filters=("is_active", "layout_type", "delivery", "publisher_id", "site_id"),
    search=("slug", "label", "page_context"),
    sort=("slug", "label", "sort_order", "is_active", "delivery", "placement_type"),
    finish=lambda placement, _given, _now: check_slot(placement),
    check=_check_site,
    before_delete=_check_unused,
    taken=lambda placement: make_taken_error(
        "slug", f"The slug {placement.slug!r} is in use. Choose another one.", code="PLACEMENT_SLUG_EXISTS"
    ),
    list_name="placements",
    natural_key="slug",
    is_for_all=True,
    refuse_reference=_refuse_site,
)


OVER_THE_PAGE: Final = frozenset({Layout.POPUP, Layout.INTERSTITIAL, Layout.STICKY_BAR})
_RATIO: Final = re.compile(r"\s*(\d{1,5}(?:\.\d{1,3})?)\s*[:/x]\s*(\d{1,5}(?:\.\d{1,3})?)\s*")


def write_tag(script_url: str, placement: Placement) -> str:
    # A slug has small letters, digits and hyphens only: it needs no escaping.
    style = find_space(placement)
    space = f' style="{style}"' if style else ""
    return f'<script async src="{script_url}"></script>\n<div data-adloom="{placement.slug}"{space}></div>'


def find_space(placement: Placement) -> str | None:
    """Return the style that reserves what the placement recommends; None if it takes no space, or says nothing."""
    if placement.layout_type in OVER_THE_PAGE:
        return None
    width, height = placement.recommended_width, placement.recommended_height
    if width is not None and height is not None:
        return f"aspect-ratio: {width} / {height}; max-width: {width}px"
    ratio = _RATIO.fullmatch(placement.recommended_aspect_ratio or "")
    if ratio is not None and float(ratio[1]) and float(ratio[2]):
        return f"aspect-ratio: {ratio[1]} / {ratio[2]}"
    return None if height is None else f"height: {height}px"
