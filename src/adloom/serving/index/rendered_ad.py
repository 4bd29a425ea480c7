"""What an answer of an auction says of the ad that won, encoded ahead of a request."""

# pure

from adloom.serving.index.bid_block import format_of
from adloom.serving.index.rendered_banner import build_destination, encode_members
from adloom.serving.index.rows import AssignmentRow


def render_ad(row: AssignmentRow) -> bytes:
    """Encode what an offer says of its ad, as members of an object."""
    return encode_members(
        {
            "adFormat": format_of(row),
            "headline": row.headline or row.title,
            "primaryText": row.description,
            "callToAction": row.cta_label,
            "creativeUrl": row.video_url or row.primary_image_url,
            "destinationUrl": build_destination(row),
        }
    )
