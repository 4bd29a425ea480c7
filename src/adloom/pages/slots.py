"""What competes for the slots of a page, as the market has written it, with names for people."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import SiteId
from adloom.core.money import Micros
from adloom.runtime.postgres import Connection

SLOTS: Final = """
    SELECT slots::text, version, updated_at FROM shortlists
     WHERE site_id = (SELECT id FROM sites WHERE public_id = $1) AND url = $2
"""
# A banner that competes has a campaign; either may be deleted since.
NAMES: Final = """
    SELECT asked.banner_id, asked.campaign_id, banner.title, campaign.name, payer.name
      FROM unnest($1::uuid[], $2::uuid[]) AS asked (banner_id, campaign_id)
      LEFT JOIN banners AS banner ON banner.public_id = asked.banner_id
      LEFT JOIN campaigns AS campaign ON campaign.public_id = asked.campaign_id
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
"""


class ListedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A banner that competes for a slot; the market writes it without names."""

    banner_id: UUID
    campaign_id: UUID
    advertiser_id: UUID | None
    category: str | None
    category_score: float
    cpm: Micros
    is_pending: bool = False
    banner_title: str | None = None
    campaign_name: str | None = None
    advertiser_name: str | None = None


class ListedSlot(msgspec.Struct, frozen=True, kw_only=True):
    """What competes for a slot of a page."""

    slot: str
    candidates: tuple[ListedCandidate, ...]


class PageSlots(msgspec.Struct, frozen=True):
    """The slots of a page, and when the market wrote them last."""

    slots: tuple[ListedSlot, ...]
    version: int
    updated_at: datetime


_decode: Final = msgspec.json.Decoder(tuple[ListedSlot, ...]).decode


async def find_slots(connection: Connection, site_id: SiteId, url: str) -> PageSlots | None:
    """Read the slots of a page; None where no auction was held for it."""
    row = await connection.fetchrow(SLOTS, site_id, url)
    if row is None:
        return None
    slots = _decode(row[0])
    asked = sorted({(one.banner_id, one.campaign_id) for slot in slots for one in slot.candidates})
    rows = await connection.fetch(NAMES, [one for one, _ in asked], [one for _, one in asked])
    fields = ("banner_title", "campaign_name", "advertiser_name")
    names = {(row[0], row[1]): dict(zip(fields, tuple(row)[2:], strict=True)) for row in rows}
    named = tuple(
        ListedSlot(
            slot=slot.slot,
            candidates=tuple(
                msgspec.structs.replace(one, **names[one.banner_id, one.campaign_id])
                for one in slot.candidates
            ),
        )
        for slot in slots
    )
    return PageSlots(named, row[1], row[2])
