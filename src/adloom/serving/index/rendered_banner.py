"""What can be encoded ahead of a request: the beginning of a placement's answers, and the parts of an offer.

A banner is assigned to many placements. What is the same on all of them is encoded once and shared. An answer
puts the parts together: `{"id", "campaignId", <creative>, <placing>, …}`.
"""

# pure

from functools import lru_cache
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId
from adloom.core.query_string import add_parameters
from adloom.serving.index.rows import AssignmentRow, PlacementRow

PAIRS_CACHED_MAX: Final = 4_096

_IDS = '{{"id":"{}-{}-{}-{}-{}","campaignId":"{}-{}-{}-{}-{}",'
_GROUPS = tuple(
    (start + begin, start + end)
    for start in (0, 32)
    for begin, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
)


class _Destination(msgspec.Struct, frozen=True, rename="camel"):
    """Direct delivery and auctions use different names."""

    cta_url: str | None = None
    destination_url: str | None = None


_decode_destination = msgspec.json.Decoder(_Destination).decode


def encode_placement_head(row: PlacementRow) -> bytes:
    placement = {
        "id": row.id,
        "slug": row.slug,
        "label": row.label,
        "layoutType": row.layout_type,
        "maxBanners": row.max_banners,
        "fallbackPlaceholderUrl": row.fallback_placeholder_url,
    }
    return b'{"placement":' + msgspec.json.encode(placement) + b',"banners":['


def encode_creative(row: AssignmentRow) -> bytes:
    """Encode what an offer says of its banner, with the overrides of its assignment."""
    return encode_members(
        {
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
            "ctaUrl": build_destination(row),
            "ctaOpenNewTab": row.cta_open_new_tab,
            "bgColor": row.bg_color,
            "fallbackPlaceholderUrl": row.fallback_placeholder_url,
        }
    )


def encode_placing(row: AssignmentRow) -> bytes:
    return encode_members(
        {
            "displayOrder": row.display_order,
            "isFallback": row.is_fallback,
            "transitionDurationMs": row.transition_duration_ms,
        }
    )


def pack_ids(banner_id: UUID, campaign_id: UUID) -> bytes:
    """Pack the two ids that tell the assignments of a placement apart."""
    return banner_id.bytes + campaign_id.bytes


@lru_cache(PAIRS_CACHED_MAX)
def unpack_ids(pair: bytes) -> tuple[BannerId, CampaignId]:
    return BannerId(UUID(bytes=pair[:16])), CampaignId(UUID(bytes=pair[16:]))


def encode_ids(pair: bytes) -> bytes:
    """Encode the two ids as the beginning of an offer."""
    digits = pair.hex()
    return _IDS.format(*[digits[start:end] for start, end in _GROUPS]).encode()


def read_destination(creative: bytes) -> str | None:
    """Decode where a click leads; clicks are too rare to store it a second time."""
    destination = _decode_destination(b"{%b}" % creative)
    return destination.cta_url or destination.destination_url


def encode_members(thing: dict[str, object]) -> bytes:
    """Encode an object without its braces."""
    return msgspec.json.encode(thing)[1:-1]


def build_destination(row: AssignmentRow) -> str | None:
    if row.cta_url is None:
        return None
    return add_parameters(
        row.cta_url,
        {
            "utm_source": row.utm_source,
            "utm_medium": row.utm_medium,
            "utm_campaign": row.utm_campaign,
            "utm_content": row.utm_content,
        },
    )
