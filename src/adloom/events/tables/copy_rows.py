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
    encode_boolean,
    encode_id,
    encode_integer,
    encode_network,
    encode_short,
    encode_text,
    encode_texts,
)

# In the order in which a row has them: first those that many rows have in common, last those that few rows have. The
# address is the referrer of an impression, or the destination of a click.
COLUMNS: Final = (
    *("is_valid", "banner_id", "placement_id", "campaign_id", "slot", "device_type", "country_code", "marks"),
    *("occurred_at", "received_at", "entry_ms", "entry_seq", "correlation_id", "request_id"),
    *("session_id", "page_url", "address", "user_id", "client_network"),
)
_COLUMN_COUNT: Final = len(COLUMNS).to_bytes(2, "big")
_NO_LAST: Final = NULL * 3  # Address, user and network, of which most rows have none.

# The size of the correlation id comes last.
_pack_times = struct.Struct(">iqiqiqiqi").pack

_Common: TypeAlias = tuple[bool, int, int, int | None, int | None, str | None, str | None, tuple[str, ...]]


class _CommonColumns(dict[_Common, bytes]):
    """The first columns, encoded once for all rows that have the same."""

    def __missing__(self, common: _Common) -> bytes:
        is_valid, banner_id, placement_id, campaign_id, slot, device_type, country_code, marks = common
        encoded = self[common] = b"".join(
            (
                _COLUMN_COUNT,
                encode_boolean(is_valid),
                encode_integer(banner_id),
                encode_integer(placement_id),
                encode_integer(campaign_id),
                encode_short(slot),
                encode_text(device_type),
                encode_text(country_code),
                encode_texts(marks) if marks else NULL,
            )
        )
        return encoded


class _Texts(dict[str | None, bytes]):
    """Texts that some rows have in common, encoded once."""

    def __missing__(self, text: str | None) -> bytes:
        encoded = self[text] = encode_text(text)
        return encoded


def encode_rows(rows: Sequence[EventRow]) -> bytearray:
    """Encode rows of one kind; ValueError if a value is too large for its column."""
    parts = [BEGIN]
    commons, texts = _CommonColumns(), _Texts()
    epoch, pack_times, no_last, null, id_size = EPOCH, _pack_times, _NO_LAST, NULL, ID_SIZE
    last_ms, entry_ms = "", 0
    try:
        for row in rows:
            event = row.event
            name, occurred_at, received_at = (
                event.correlation_id.encode(),
                event.occurred_at,
                event.received_at,
            )
            since = occurred_at - epoch
            occurred = received = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
            if received_at != occurred_at:  # Where a browser reports no time, they are the same.
                since = received_at - epoch
                received = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
            ms, _, entry_seq = row.entry_id.partition("-")
            if ms != last_ms:  # Many entries have the same.
                last_ms, entry_ms = ms, int(ms)
            request_id = event.request_id
            parts += (
                commons[
                    row.is_valid,
                    row.banner_id,
                    row.placement_id,
                    row.campaign_id,
                    event.slot,
                    event.device_type,
                    event.country_code,
                    row.marks,
                ],
                pack_times(8, occurred, 8, received, 8, entry_ms, 8, int(entry_seq), len(name)),
                name,
                null if request_id is None else id_size + request_id.int.to_bytes(16, "big"),
                texts[event.session_id],
                texts[event.page_url],
            )
            address = event.referrer_url if isinstance(event, Impression) else event.destination_url
            if address is None and row.user_id is None and event.client_network is None:
                parts.append(no_last)
            else:
                parts += (
                    texts[address],
                    encode_id(row.user_id),
                    encode_network(event.client_network),
                )
    except struct.error as error:
        raise ValueError(f"A value is too large for its column: {error}") from error
    parts.append(END)
    return bytearray().join(parts)
