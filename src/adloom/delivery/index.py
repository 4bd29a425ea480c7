"""The catalog compiled for the question «which ads, for this request?».

An index is immutable and of one version. A newer one shares with it whatever did not
change, and replaces it whole, by one reference.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.delivery.destination import with_parameters
from adloom.delivery.rows import AssignmentRow, Changes, PlacementRow, Snapshot
from adloom.ledger.token import offer_ids

ALWAYS = datetime.min.replace(tzinfo=UTC)
NEVER = datetime.max.replace(tzinfo=UTC)


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An assignment that may serve, with everything that can be prepared ahead of a request."""

    opens_at: datetime
    closes_at: datetime
    token_ids: bytes
    head: bytes


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """A slot with its candidates, in the order in which they fill it."""

    key: int
    id: PlacementId
    slug: str
    is_active: bool
    slots_max: int
    head: bytes
    primaries: tuple[Candidate, ...]
    fallbacks: tuple[Candidate, ...]
    destinations: Mapping[tuple[CampaignId, BannerId], str | None]


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled catalog at one version."""

    version: int
    by_key: Mapping[int, Placement]
    by_slug: Mapping[bytes, Placement]
    by_id: Mapping[UUID, Placement]
    banner_ids: frozenset[UUID]
    campaign_ids: frozenset[UUID]

    def has_banner(self, banner_id: UUID) -> bool:
        """Tell whether there is such a banner, served or not, deleted or not."""
        return banner_id in self.banner_ids

    def has_placement(self, placement_id: UUID) -> bool:
        """Tell whether there is such a placement, active or not."""
        return placement_id in self.by_id

    def has_campaign(self, campaign_id: UUID) -> bool:
        """Tell whether there is such a campaign, running or not, deleted or not."""
        return campaign_id in self.campaign_ids

    def destination(self, campaign_id: UUID, placement_id: UUID, banner_id: UUID) -> str | None:
        """Tell where a click on an offer leads, also when the offer would not be made any more."""
        placement = self.by_id.get(placement_id)
        if placement is None:
            return None
        return placement.destinations.get((CampaignId(campaign_id), BannerId(banner_id)))


def compiled(snapshot: Snapshot) -> Index:
    """Compile the whole catalog."""
    placements = _compiled_placements(snapshot.placements, snapshot.assignments)
    return _index(
        version=snapshot.version,
        by_key={placement.key: placement for placement in placements},
        banner_ids=frozenset(snapshot.banner_ids),
        campaign_ids=frozenset(snapshot.campaign_ids),
    )


def updated(index: Index, changes: Changes) -> Index:
    """Compile only what changed; the result equals compiling the whole catalog again."""
    assert changes.version >= index.version, "versions never go back"
    by_key = dict(index.by_key)
    for key in changes.placement_keys:
        by_key.pop(key, None)
    for placement in _compiled_placements(changes.placements, changes.assignments):
        by_key[placement.key] = placement
    return _index(
        version=changes.version,
        by_key=by_key,
        banner_ids=index.banner_ids.union(changes.banner_ids),
        campaign_ids=index.campaign_ids.union(changes.campaign_ids),
    )


def _index(
    *,
    version: int,
    by_key: Mapping[int, Placement],
    banner_ids: frozenset[UUID],
    campaign_ids: frozenset[UUID],
) -> Index:
    return Index(
        version=version,
        by_key=by_key,
        by_slug={placement.slug.encode(): placement for placement in by_key.values()},
        by_id={placement.id: placement for placement in by_key.values()},
        banner_ids=banner_ids,
        campaign_ids=campaign_ids,
    )


def _compiled_placements(
    rows: Iterable[PlacementRow], assignments: Iterable[AssignmentRow]
) -> list[Placement]:
    by_placement: dict[int, list[AssignmentRow]] = {}
    for assignment in assignments:
        by_placement.setdefault(assignment.placement_key, []).append(assignment)
    return [_compiled_placement(row, by_placement.get(row.key, [])) for row in rows]


def _compiled_placement(row: PlacementRow, assignments: list[AssignmentRow]) -> Placement:
    live = [one for one in assignments if one.is_live]
    primaries = sorted((one for one in live if not one.is_fallback), key=_primary_order)
    fallbacks = sorted((one for one in live if one.is_fallback), key=_fallback_order)
    return Placement(
        key=row.key,
        id=row.id,
        slug=row.slug,
        is_active=row.is_active,
        slots_max=row.max_banners,
        head=_placement_head(row),
        primaries=tuple(_candidate(row, one) for one in primaries),
        fallbacks=tuple(_candidate(row, one) for one in fallbacks) if row.allow_partial_render else (),
        destinations={(one.campaign_id, one.banner_id): _destination(one) for one in assignments},
    )


def _primary_order(row: AssignmentRow) -> tuple[int, int, int, int, UUID]:
    return (row.display_order, -row.weight, -row.campaign_priority, -row.banner_priority, row.banner_id)


def _fallback_order(row: AssignmentRow) -> tuple[float, int, int, int, int, UUID]:
    priority = float("inf") if row.fallback_priority is None else row.fallback_priority
    return (priority, *_primary_order(row))


def _candidate(placement: PlacementRow, row: AssignmentRow) -> Candidate:
    return Candidate(
        opens_at=row.starts_at or ALWAYS,
        closes_at=row.ends_at or NEVER,
        token_ids=offer_ids(row.banner_id, placement.id, row.campaign_id),
        head=_banner_head(row),
    )


def _placement_head(row: PlacementRow) -> bytes:
    placement = {
        "id": row.id,
        "slug": row.slug,
        "label": row.label,
        "layoutType": row.layout_type,
        "maxBanners": row.max_banners,
        "fallbackPlaceholderUrl": row.fallback_placeholder_url,
    }
    return b'{"placement":' + msgspec.json.encode(placement) + b',"banners":['


def _banner_head(row: AssignmentRow) -> bytes:
    banner = {
        "id": row.banner_id,
        "campaignId": row.campaign_id,
        "title": row.title,
        "headline": row.headline,
        "subheadline": row.subheadline,
        "description": row.description,
        "primaryImageUrl": row.primary_image_url,
        "primaryImageAlt": row.primary_image_alt,
        "mobileImageUrl": row.mobile_image_url,
        "videoUrl": row.video_url,
        "mediaVariants": row.media_variants,
        "ctaLabel": row.cta_label,
        "ctaUrl": _destination(row),
        "ctaOpenNewTab": row.cta_open_new_tab,
        "bgColor": row.bg_color,
        "displayOrder": row.display_order,
        "isFallback": row.is_fallback,
        "transitionDurationMs": row.transition_duration_ms,
    }
    return msgspec.json.encode(banner).removesuffix(b"}")


def _destination(row: AssignmentRow) -> str | None:
    if row.cta_url is None:
        return None
    return with_parameters(
        row.cta_url,
        {
            "utm_source": row.utm_source,
            "utm_medium": row.utm_medium,
            "utm_campaign": row.utm_campaign,
            "utm_content": row.utm_content,
        },
    )
