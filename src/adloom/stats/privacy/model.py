"""What is stored about one visitor."""

import hashlib
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.events.log.event import Mark
from adloom.events.tables.erasure_store import ErasedRows
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry
from adloom.stats.rejected.model import EventKind

# Per answer. A visitor of many pages a day may have some thousand events.
EVENTS_A_PAGE: Final = 5_000
NOUN: Final = "reader"
_DIGEST_BYTES: Final = 16


class KeptEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event with everything that is stored of it."""

    kind: EventKind
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


def digest_of(user_id: UUID) -> str:
    """Hash a visitor's id for the audit record: it can be found by the id, but the id cannot be read from it."""
    return hashlib.sha256(user_id.bytes).digest()[:_DIGEST_BYTES].hex()


def erasure_entry(user_id: UUID, erased: ErasedRows) -> NewAuditEntry:
    changes = {
        "impressions": {"from": erased.impressions, "to": 0},
        "clicks": {"from": erased.clicks, "to": 0},
        "auctions": {"from": erased.auctions, "to": 0},
    }
    return NewAuditEntry(AuditSubject(NOUN, digest_of(user_id), None), "erase", changes)
