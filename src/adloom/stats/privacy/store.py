"""What is stored about one visitor."""

from collections.abc import Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.core.ids import digest_user
from adloom.events.log.event import Mark
from adloom.events.tables.erasure_store import ErasedRows
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry
from adloom.runtime.listing import Filters, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection

# Per answer. A visitor of many pages a day may have some thousand events.
EVENTS_A_PAGE: Final = 5_000
NOUN: Final = "reader"


class KeptKind(StrEnum):
    """What was reported."""

    IMPRESSION = "impression"
    CLICK = "click"
    CONVERSION = "conversion"


class KeptEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event with everything that is stored of it; a conversion is that of one of the visitor's clicks."""

    kind: KeptKind
    correlation_id: str
    banner_id: UUID | None
    placement_id: UUID | None
    campaign_id: UUID | None
    session_id: str | None
    device_type: str | None
    country_code: str | None
    page_url: str | None
    referrer_url: str | None
    destination_url: str | None
    occurred_at: datetime
    received_at: datetime
    request_id: UUID | None
    slot: int | None
    client_network: str | None
    value: float | None
    currency: str | None
    marks: tuple[Mark, ...]


class KeptAuction(msgspec.Struct, frozen=True, kw_only=True):
    """An auction for a visitor, with the context that was known; bids are not about the visitor."""

    id: UUID
    placement_type: str
    placement_id: UUID | None
    auction_time: datetime
    context: dict[str, Any]
    winning_ad_id: UUID | None


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One page of what is stored about a visitor, oldest first; `kept_since` is the first day that is kept at all."""

    events: Sequence[KeptEvent]
    total_count: int
    auctions: Sequence[KeptAuction]
    auction_count: int
    kept_since: date | None
    erased_at: datetime | None


def make_erasure_entry(user_id: UUID, erased: ErasedRows) -> NewAuditEntry:
    changes = {
        "impressions": {"from": erased.impressions, "to": 0},
        "clicks": {"from": erased.clicks, "to": 0},
        "conversions": {"from": erased.conversions, "to": 0},
        "auctions": {"from": erased.auctions, "to": 0},
    }
    return NewAuditEntry(AuditSubject(NOUN, digest_user(user_id).hex(), None), "erase", changes)


_OF_A_KIND: Final = """
    SELECT '{kind}' AS kind, user_id, correlation_id, banner_id, placement_id, campaign_id, session_id, device_type,
           country_code, page_url, {addresses}, occurred_at, received_at, request_id, slot, client_network, marks,
           NULL::bigint AS value_micros, NULL AS currency
      FROM {table}
"""
_IMPRESSIONS: Final = _OF_A_KIND.format(
    kind=KeptKind.IMPRESSION,
    table="events.banner_impressions",
    addresses="referrer_url, NULL AS destination_url",
)
_CLICKS: Final = _OF_A_KIND.format(
    kind=KeptKind.CLICK, table="events.banner_clicks", addresses="NULL AS referrer_url, destination_url"
)
# A conversion has no visitor of its own: it is the visitor's as long as the click of its offer is.
_CONVERSIONS: Final = """
    SELECT 'conversion', click.user_id, encode(it.name, 'hex'), it.banner_id, it.placement_id, it.campaign_id,
           NULL, it.device_type, it.country_code, NULL, NULL, NULL, it.occurred_at, it.received_at, it.request_id,
           it.slot, NULL, it.marks, it.value_micros, it.currency
      FROM events.conversions AS it
      JOIN events.banner_clicks AS click USING (request_id, slot)
     WHERE (click.marks && '{second_impression,second_click}') IS NOT TRUE
"""
# Outer joins: rows are exported even if their campaign or banner is gone.
EVENTS: Final = RowSource(
    columns="""
        it.kind, it.correlation_id, banners.public_id AS banner_id, placements.public_id AS placement_id,
        campaigns.public_id AS campaign_id, it.session_id, it.device_type, it.country_code, it.page_url,
        it.referrer_url, it.destination_url, it.occurred_at, it.received_at, it.request_id, it.slot,
        it.client_network::text AS client_network,
        coalesce(it.marks, '{}') AS marks, (it.value_micros / 1e6)::float8 AS value, it.currency
    """,
    tables=f"""
        ({_IMPRESSIONS} UNION ALL {_CLICKS} UNION ALL {_CONVERSIONS}) AS it
        LEFT JOIN banners ON banners.id = it.banner_id
        LEFT JOIN placements_ever AS placements ON placements.id = it.placement_id
        LEFT JOIN campaigns ON campaigns.id = it.campaign_id
    """,
    tiebreak="(it.kind, it.correlation_id, it.request_id, it.slot, it.received_at)",
)
AUCTIONS: Final = RowSource(
    columns="""
        it.id, it.placement_type, it.placement_id, it.auction_time, coalesce(it.context, '{}') AS context,
        it.winning_ad_id
    """,
    tables="auction.auctions AS it",
    tiebreak="it.id",
)
ERASED_AT: Final = "SELECT erased_at FROM erased_users WHERE user_digest = $1"
# Days are whole partitions, named by their day.
KEPT_SINCE: Final = """
    SELECT min(to_date(right(partition.relname, 8), 'YYYYMMDD'))
      FROM pg_inherits JOIN pg_class AS partition ON partition.oid = inhrelid
     WHERE inhparent IN ('events.banner_impressions'::regclass, 'events.banner_clicks'::regclass)
"""


async def find_kept(connection: Connection, user_id: UUID, *, page: int) -> Kept:
    filters = Filters()
    filters.add("it.user_id = {}", user_id)
    request = PageRequest(number=page, size=EVENTS_A_PAGE, sort="occurred_at")
    events = await fetch_structs(connection, EVENTS, filters, request, KeptEvent)
    by_time = msgspec.structs.replace(request, sort="auction_time")
    auctions = await fetch_structs(connection, AUCTIONS, filters, by_time, KeptAuction)
    return Kept(
        events=events.items,
        total_count=events.total_count,
        auctions=auctions.items,
        auction_count=auctions.total_count,
        kept_since=await connection.fetchval(KEPT_SINCE),
        erased_at=await connection.fetchval(ERASED_AT, digest_user(user_id)),
    )
