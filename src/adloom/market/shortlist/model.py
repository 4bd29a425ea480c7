"""Shortlists: the candidates for a slot of a page."""

# pure

from datetime import datetime
from typing import Final

import msgspec

from adloom.core.ids import AdvertiserId, BannerId, CampaignId, SiteId
from adloom.core.money import Micros
from adloom.market.approval import ApprovalState


class ShortlistCandidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A creative that may fill a slot; `category` is None for filler, `cpm` is the most its campaign pays.

    `floor` is what the category costs on the site at least; a slot's own floor may be higher.
    """

    banner_id: BannerId
    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    category: str | None
    category_score: float
    cpm: Micros
    floor: Micros = Micros(0)
    is_pending: bool = False


class Shortlist(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The candidates for a slot of a page; served until `expires_at`."""

    slot: str
    candidates: tuple[ShortlistCandidate, ...]


class PageShortlists(msgspec.Struct, frozen=True, kw_only=True):
    """A row: all slots of a page. A later version replaces it whole."""

    site_id: SiteId
    url: str
    version: int
    slots: tuple[Shortlist, ...]
    updated_at: datetime
    expires_at: datetime


class ApprovalSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A row: a banner was a candidate on a site for the first time."""

    site_id: SiteId
    banner_id: BannerId
    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    state: ApprovalState
    at: datetime


class ShortlistsChanged(msgspec.Struct, frozen=True):
    """The notice that shortlists of a site were written, with the highest version among them."""

    site_id: SiteId
    version: int


class BannersSeen(msgspec.Struct, frozen=True):
    """The notice that banners wait for a decision of a site's publisher."""

    site_id: SiteId
    count: int


def name_channel(topic: str) -> str:
    return f"adloom:market:{topic}"


SHORTLIST_NOTICES: Final = name_channel("shortlists")

read_shortlist_notice: Final = msgspec.json.Decoder(ShortlistsChanged).decode
