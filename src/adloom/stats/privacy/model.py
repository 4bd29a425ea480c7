"""What is kept of one reader."""

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

# The most that one answer has. A reader of many pages a day may have some thousand events.
EVENTS_A_PAGE: Final = 5_000
NOUN: Final = "reader"
_DIGEST_BYTES: Final = 16


class KeptEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event with all that is kept of it."""

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
    """An auction that was held for a reader, with what was known of them; what was bid is not about them."""

    id: UUID
    placement_type: str
    placement_id: UUID | None
    auction_time: datetime
    context: dict[str, Any]
    winning_ad_id: UUID | None


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One page of what is kept of a reader, the oldest first; `kept_since` is the first day that is kept of anybody."""

    events: Sequence[KeptEvent]
    total_count: int
    auctions: Sequence[KeptAuction]
    auction_count: int
    kept_since: date | None
    erased_at: datetime | None


def digest_of(user_id: UUID) -> str:
    """Name a reader for the trail: who knows the id can find the entry, and nobody can read the id from it."""
    return hashlib.sha256(user_id.bytes).digest()[:_DIGEST_BYTES].hex()


def erasure_entry(user_id: UUID, erased: ErasedRows) -> NewAuditEntry:
    """Word an erasure for the trail."""
    changes = {
        "impressions": {"from": erased.impressions, "to": 0},
        "clicks": {"from": erased.clicks, "to": 0},
        "auctions": {"from": erased.auctions, "to": 0},
    }
    return NewAuditEntry(AuditSubject(NOUN, digest_of(user_id), None), "erase", changes)
