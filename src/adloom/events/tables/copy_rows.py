"""Rows of the event tables in the binary form of PostgreSQL's COPY."""

# pure

import struct
from collections.abc import Sequence
from typing import Final, TypeAlias

from adloom.events.log.event import Impression
from adloom.events.tables.apply_batch import EventRow
from adloom.runtime.copy_format import (
    BEGIN,
    END,
    EPOCH,
    ID_SIZE,
    NULL,
    encode_integer,
    encode_network,
    encode_short,
    encode_text,
    encode_texts,
)

# In the order in which a row has them; the address is the referrer of an impression, or the destination of a click.
COLUMNS: Final = (
    *("is_valid", "occurred_at", "received_at", "entry_ms", "entry_seq", "correlation_id", "request_id"),
    *("banner_id", "placement_id", "campaign_id", "slot", "device_type", "country_code"),
    *("session_id", "page_url", "address", "user_id", "client_network", "marks"),
)

# The number of columns comes first, and the size of the correlation id last.
_pack_first = struct.Struct(">hi?iqiqiqiqi").pack

_Place: TypeAlias = tuple[int, int, int | None, int | None, str | None, str | None]


class _Places(dict[_Place, bytes]):
    """Banner, placement, campaign, slot, device and country, encoded once for the rows that have the same."""

    def __missing__(self, place: _Place) -> bytes:
        banner_id, placement_id, campaign_id, slot, device_type, country_code = place
        place_bytes = self[place] = b"".join(
            (
                encode_integer(banner_id),
                encode_integer(placement_id),
                encode_integer(campaign_id),
                encode_short(slot),
                encode_text(device_type),
                encode_text(country_code),
            )
        )
        return place_bytes


def encode_rows(rows: Sequence[EventRow]) -> bytearray:
    """Encode rows of one kind; ValueError if a value is too large for its column."""
    parts = [BEGIN]
    places = _Places()
    columns, epoch, null, pack_first = len(COLUMNS), EPOCH, NULL, _pack_first
    try:
        for row in rows:
            event = row.event
            name, request_id = event.correlation_id.encode(), event.request_id
            occurred, received = event.occurred_at - epoch, event.received_at - epoch
            entry_ms, _, entry_seq = row.entry_id.partition("-")
            address = event.referrer_url if isinstance(event, Impression) else event.destination_url
            place = (
                row.banner_id,
                row.placement_id,
                row.campaign_id,
                event.slot,
                event.device_type,
                event.country_code,
            )
            parts += (
                pack_first(
                    columns,
                    1,
                    row.is_valid,
                    8,
                    (occurred.days * 86_400 + occurred.seconds) * 1_000_000 + occurred.microseconds,
                    8,
                    (received.days * 86_400 + received.seconds) * 1_000_000 + received.microseconds,
                    8,
                    int(entry_ms),
                    8,
                    int(entry_seq),
                    len(name),
                ),
                name,
                null if request_id is None else ID_SIZE + request_id.int.to_bytes(16, "big"),
                places[place],
                null if event.session_id is None else encode_text(event.session_id),
                null if event.page_url is None else encode_text(event.page_url),
                null if address is None else encode_text(address),
                null if row.user_id is None else ID_SIZE + row.user_id.bytes,
                null if event.client_network is None else encode_network(event.client_network),
                encode_texts(row.marks) if row.marks else null,
            )
    except struct.error as error:
        raise ValueError(f"A value is too large for its column: {error}") from error
    parts.append(END)
    return bytearray().join(parts)
