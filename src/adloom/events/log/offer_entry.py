"""Encodes the log's entries of events of offers; what all offers of a candidate share is encoded once.

An entry says the same as that of `encode_event`: its fields may stand in another order.
"""

# pure

import struct
from binascii import hexlify
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.events.log.event import SHORT_NAMES, ChargedBy
from adloom.events.log.names import OFFER_NAMES

_SMALL_MAP: Final = 0x80  # MessagePack: a map of up to 15 fields has its size in its first byte.
_SMALL_MAP_MAX: Final = 15
_LARGER_MAP: Final = b"\xde\x00"
_HEADS: Final = tuple(
    bytes((_SMALL_MAP + fields,)) if fields <= _SMALL_MAP_MAX else _LARGER_MAP + bytes((fields,))
    for fields in range(32)
)
_encode: Final = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_SLOTS: Final = 256
_OFFER_FIELDS: Final = 3  # Of every entry: name, slot and request.
_REQUEST: Final = _encode(SHORT_NAMES["request_id"]) + b"\xc4\x10"  # Sixteen bytes follow.
_split_id: Final = struct.Struct("8s4s4s4s12s").unpack


def _encode_slot(slot: int) -> tuple[bytes, bytes]:
    """Encode what is before and after the request's id in the name of an event: the rest of the fields of its offer."""
    name = f"{OFFER_NAMES}{UUID(int=0)}:{slot}"
    before, _, after = _encode({SHORT_NAMES["correlation_id"]: name}).partition(str(UUID(int=0)).encode())
    return before[1:], after + _encode({SHORT_NAMES["slot"]: slot})[1:] + _REQUEST


_BESIDE_ID: Final = [_encode_slot(slot) for slot in range(_SLOTS)]


class EntryPart(NamedTuple):
    """Some fields of an entry, and how many they are."""

    fields: int
    encoded: bytes


NO_ENTRY_PART: Final = EntryPart(0, b"")


class EntryTerms(msgspec.Struct, frozen=True, omit_defaults=True, rename=SHORT_NAMES):
    """What the entries of all offers of a candidate share."""

    banner_id: BannerId
    placement_id: PlacementId
    campaign_id: CampaignId
    charge: Micros = Micros(0)
    charged_by: ChargedBy = ChargedBy.IMPRESSION
    category: str | None = None


class _Report(msgspec.Struct, frozen=True, omit_defaults=True, rename=SHORT_NAMES, gc=False, tag_field="k"):
    occurred_at: datetime
    received_at: datetime
    offered_at: int = 0
    lease: int = 0
    session_id: str | None = None
    user_id: UUID | None = None
    device_type: str | None = None
    country_code: str | None = None
    page_url: str | None = None


class ReportedImpression(_Report, frozen=True, tag="impression.v1"):
    """What an impression of an offer has beside its offer."""

    referrer_url: str | None = None


class ReportedClick(_Report, frozen=True, tag="click.v1"):
    """What a click on an offer has beside its offer."""

    destination_url: str | None = None


def encode_terms(terms: EntryTerms) -> EntryPart:
    encoded = _encode(terms)
    return EntryPart(encoded[0] - _SMALL_MAP, encoded[1:])


def encode_entry(
    request: bytes, slot: int, report: ReportedImpression | ReportedClick, terms: EntryPart
) -> bytes:
    """Encode the event of an offer, which is named by it."""
    encoded, (before_id, after_id) = _encode(report), _BESIDE_ID[slot]
    return b"".join(
        (
            _HEADS[encoded[0] - _SMALL_MAP + terms.fields + _OFFER_FIELDS],
            encoded[1:],
            before_id,
            b"-".join(_split_id(hexlify(request))),
            after_id,
            request,
            terms.encoded,
        )
    )
