"""Rows of the money ledger in the binary form of PostgreSQL's COPY, and their sums."""

# pure

import struct
from collections.abc import Iterable
from typing import Final

import msgspec

from adloom.budgets.messages import MoneyRow
from adloom.runtime.copy_format import (
    BEGIN,
    END,
    encode_date,
    encode_id,
    encode_integer,
    encode_long,
    encode_moment,
    encode_short,
    encode_text,
)

# In the order in which a row has them; the first are those that rows of a group have in common.
COLUMNS: Final = (
    *("kind", "campaign_id", "advertiser_id", "day", "budget_window", "at", "lease", "confirmed_by"),
    *("banner_id", "placement_id", "amount_micros", "second", "request_id", "slot"),
)
_COLUMN_COUNT: Final = len(COLUMNS).to_bytes(2, "big")
_pack_last = struct.Struct(">iqiq").pack
_pack_offer = struct.Struct(">iqiqi16sih").pack


class RowGroup(msgspec.Struct, gc=False):
    """Rows that differ only in amount, second and offer: one of them, their number and what they amount to."""

    row: MoneyRow
    encoded: bytes
    count: int = 0
    amount: int = 0


def encode_rows(rows: Iterable[MoneyRow]) -> tuple[bytearray, list[RowGroup]]:
    """Encode rows and add them up by group; ValueError if a value is too large for its column."""
    parts = [BEGIN]
    groups: dict[tuple[object, ...], RowGroup] = {}
    try:
        for row in rows:
            key = (
                row.kind,
                row.campaign_id.int,
                row.at,
                row.lease,
                row.banner_id and row.banner_id.int,
                row.placement_id and row.placement_id.int,
                row.day,
                row.window,
                row.confirmed_by,
                row.advertiser_id and row.advertiser_id.int,
            )
            if (group := groups.get(key)) is None:
                group = groups[key] = RowGroup(row, _encode_common(row))
            group.count += 1
            group.amount += row.amount
            request_id, slot = row.request_id, row.slot
            if request_id is None or slot is None:
                last = _pack_last(8, row.amount, 8, row.second) + encode_id(request_id) + encode_short(slot)
            else:
                offer = request_id.int.to_bytes(16, "big")
                last = _pack_offer(8, row.amount, 8, row.second, 16, offer, 2, slot)
            parts += (group.encoded, last)
    except struct.error as error:
        raise ValueError(f"A value is too large for its column: {error}") from error
    parts.append(END)
    return bytearray().join(parts), list(groups.values())


def _encode_common(row: MoneyRow) -> bytes:
    return b"".join(
        (
            _COLUMN_COUNT,
            encode_text(row.kind),
            encode_id(row.campaign_id),
            encode_id(row.advertiser_id),
            encode_date(row.day),
            encode_integer(row.window),
            encode_moment(row.at),
            encode_long(row.lease),
            encode_text(row.confirmed_by),
            encode_id(row.banner_id),
            encode_id(row.placement_id),
        )
    )
