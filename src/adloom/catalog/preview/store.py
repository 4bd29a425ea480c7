"""Reads what a preview link shows: a banner as it would look in a placement, and who may see it there."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.catalog.banner_content import DELIVERED, write_columns
from adloom.core.errors import BannerNotFoundError, ConflictError, PlacementNotFoundError
from adloom.core.ids import BannerId, PlacementId
from adloom.runtime.postgres import Connection

# Where several campaigns show the banner here, the texts are those of the assignment that was changed last.
PREVIEWED: Final = f"""
    SELECT banner.public_id AS banner_id, placement.public_id AS placement_id,
           maker.public_id AS advertiser_id, publisher.public_id AS publisher_id,
           slug, label, layout_type::text AS layout_type, max_banners, delivery::text AS delivery, site.domain AS site,
           placement.fallback_placeholder_url AS placeholder_url,
           {write_columns(DELIVERED, assignment="assigned")}, assigned.transition_duration_ms,
           assigned.banner_id IS NOT NULL OR approval.banner_id IS NOT NULL AS is_asked,
           EXISTS (
               SELECT FROM campaign_placements AS link JOIN campaigns AS campaign ON campaign.id = link.campaign_id
                WHERE link.placement_id = placement.id AND link.state <> 'refused'
                  AND campaign.deleted_at IS NULL AND campaign.advertiser_id = banner.advertiser_id
           ) AS is_linked,
           coalesce(approval.state = 'rejected', false) OR EXISTS (
               SELECT FROM banner_assignments AS other JOIN campaign_placements AS link USING (campaign_id, placement_id)
                WHERE other.placement_id = placement.id AND other.banner_id = banner.id
                  AND (other.is_refused OR link.state = 'refused')
           ) AS is_refused
      FROM banners AS banner
      JOIN placements AS placement ON placement.public_id = $2
      LEFT JOIN advertisers AS maker ON maker.id = banner.advertiser_id
      LEFT JOIN publishers AS publisher ON publisher.id = placement.publisher_id
      LEFT JOIN sites AS site ON site.id = placement.site_id
      LEFT JOIN site_approvals AS approval ON approval.site_id = site.id AND approval.banner_id = banner.id
      LEFT JOIN LATERAL (
          SELECT one.banner_id, one.override_headline, one.override_subheadline, one.override_cta_label,
                 one.override_cta_url, one.transition_duration_ms
            FROM banner_assignments AS one JOIN campaigns AS campaign ON campaign.id = one.campaign_id
           WHERE one.placement_id = placement.id AND one.banner_id = banner.id AND campaign.deleted_at IS NULL
           ORDER BY one.updated_at DESC, one.campaign_id LIMIT 1
      ) AS assigned ON true
     WHERE banner.public_id = $1 AND banner.deleted_at IS NULL AND maker.deleted_at IS NULL
"""  # noqa: S608 - our own names


class PreviewRefusedError(ConflictError):
    """The placement's publisher does not want the banner, or was never asked."""

    code = "PREVIEW_REFUSED"


class PreviewedAd(msgspec.Struct, frozen=True, kw_only=True):
    """A banner in a placement; `content` is what visitors get to see of it, by the names of an index's row."""

    banner_id: BannerId
    placement_id: PlacementId
    advertiser_id: UUID | None
    publisher_id: UUID | None
    slug: str
    label: str
    layout_type: str
    max_banners: int
    delivery: str
    site: str | None
    placeholder_url: str | None
    is_asked: bool  # By an assignment, or in the site's approvals.
    is_linked: bool  # A campaign of its advertiser uses the placement, or asks for it.
    is_refused: bool
    content: Mapping[str, Any]

    def check_visible(self, account_id: UUID | None) -> None:
        """Raise unless an account may see the banner in this placement; None sees all.

        An advertiser sees its own banners, where it has asked for the placement. A publisher sees its own placements,
        with banners that asked for them.
        """
        if account_id is None:
            return
        if account_id == self.advertiser_id:
            self._check_wanted(account_id)
        elif account_id != self.publisher_id or not self.is_asked:
            raise BannerNotFoundError("There is no such banner.")

    def _check_wanted(self, account_id: UUID) -> None:
        if account_id == self.publisher_id:
            return
        if self.is_refused:
            raise PreviewRefusedError("The placement's publisher has refused this banner.")
        if not self.is_linked and self.delivery != "contextual":
            raise PreviewRefusedError(
                "None of your campaigns has asked for this placement. Add it to one first, under Banners and placements."
            )


_OWN: Final = frozenset(PreviewedAd.__struct_fields__)


async def read_previewed(
    connection: Connection, banner_id: UUID, placement_id: UUID, account_id: UUID | None
) -> PreviewedAd:
    """Return a banner in a placement as an account may see it, or raise."""
    row = await connection.fetchrow(PREVIEWED, banner_id, placement_id)
    if row is None:
        if await connection.fetchval("SELECT true FROM placements WHERE public_id = $1", placement_id):
            raise BannerNotFoundError("There is no such banner.")
        raise PlacementNotFoundError("There is no such placement.")
    own = {name: value for name, value in row.items() if name in _OWN}
    content = {name: value for name, value in row.items() if name not in _OWN}
    ad = PreviewedAd(**own, content=content)
    ad.check_visible(account_id)
    return ad
