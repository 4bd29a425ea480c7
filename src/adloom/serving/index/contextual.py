"""Creatives of campaigns in the index: what contextual slots need to know of them.

A campaign's creatives are a placement of their own, with a negative key: so its schedule, caps, leases and targeting
are kept as everywhere else. A request finds them by the campaign.
"""

# pure

import msgspec

from adloom.core.ids import BannerId
from adloom.core.money import Micros
from adloom.serving.index.rendered_banner import build_destination, encode_members
from adloom.serving.index.rows import AssignmentRow

MIME_BY_ENDING = {
    "avif": "image/avif",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "mp4": "video/mp4",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webm": "video/webm",
    "webp": "image/webp",
}
MIME_DEFAULT = "image/*"


class CreativeTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign bids for, and what its banner is, beside what an assignment says."""

    width: int | None = None
    height: int | None = None
    categories: tuple[str, ...] = ()
    excluded_categories: tuple[str, ...] = ()
    takes_filler: bool = False
    product_category: str | None = None
    blocked_sites: tuple[str, ...] = ()


class CreativeRow(msgspec.Struct, frozen=True):
    """A creative as the catalog has it; its placement key is the campaign's, negative."""

    assignment: AssignmentRow
    terms: CreativeTerms


class ContextualCreative(msgspec.Struct, frozen=True, kw_only=True):
    """A banner of a campaign, as a contextual slot needs to know it."""

    position: int  # Among the candidates of its campaign.
    campaign_key: int
    banner_key: int
    banner_id: BannerId
    bid: Micros  # For a thousand impressions.
    width: int | None
    height: int | None
    landing_domain: str | None
    product_category: str | None
    categories: frozenset[str]
    excluded_categories: frozenset[str]
    takes_filler: bool
    blocked_sites: tuple[str, ...]
    # Here, and not in each slot that it may fill: so they stay in the processor's caches.
    keys: frozenset[int]  # Of its banner, and negative of its campaign: a page has neither twice.
    banner: bytes  # As a token has it, like
    campaign: bytes
    ad: bytes  # What an answer says of it: its ids, and what it shows.


def build_creative(row: CreativeRow, *, position: int, landing_domain: str | None) -> ContextualCreative:
    one, terms = row.assignment, row.terms
    return ContextualCreative(
        position=position,
        campaign_key=one.campaign_key,
        banner_key=one.banner_key,
        banner_id=one.banner_id,
        bid=one.bid or Micros(0),
        width=terms.width,
        height=terms.height,
        landing_domain=landing_domain,
        product_category=terms.product_category,
        categories=frozenset(terms.categories),
        excluded_categories=frozenset(terms.excluded_categories),
        takes_filler=terms.takes_filler,
        blocked_sites=terms.blocked_sites,
        keys=frozenset((one.banner_key, -one.campaign_key)),
        banner=one.banner_id.bytes,
        campaign=one.campaign_id.bytes,
        ad=b'"bannerId":"%b","campaignId":"%b",%b'
        % (str(one.banner_id).encode(), str(one.campaign_id).encode(), render_creative(row)),
    )


def render_creative(row: CreativeRow) -> bytes:
    """Encode what an answer says of its ad, as members of an object."""
    one = row.assignment
    asset = one.video_url or one.primary_image_url
    return encode_members(
        {
            "assetUrl": asset,
            "mime": find_mime(asset),
            "width": row.terms.width,
            "height": row.terms.height,
            "headline": one.headline or one.title,
            "primaryText": one.description,
            "callToAction": one.cta_label,
            "destinationUrl": build_destination(one),
        }
    )


def find_mime(address: str) -> str:
    """Guess what an address leads to by its ending."""
    path = address.partition("?")[0].partition("#")[0]
    return MIME_BY_ENDING.get(path.rpartition(".")[2].lower(), MIME_DEFAULT)
