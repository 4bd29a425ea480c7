"""How events lie in a file of the spool: a header, then record after record; pure.

    header   magic, version, the life that wrote the file, which of its files it is, and a checksum
    record   length u32, checksum u32, event

All numbers are little-endian. A record's checksum is over its length and its event, and begins
with the header's: so bytes that only look like a record, because a client has sent them or
because they are left from another file, are none.

What follows a record that cannot be read is searched for the next one that can. Where there is
none the file ends there: the process died while it wrote, and nobody was told that it had.
"""

import re
import struct
from collections.abc import Iterable
from typing import Final
from uuid import UUID
from zlib import crc32

import msgspec

MAGIC: Final = b"ADLSPOOL"
VERSION: Final = 1
ENTRY_BYTES_MAX: Final = 2**20 - 1  # The search knows a length by its upper bits.

_HEADER: Final = struct.Struct("<8sI16sII")
_RECORD: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<I")
HEADER_BYTES: Final = _HEADER.size
RECORD_BYTES: Final = _RECORD.size

_maybe_length: Final = re.compile(rb"(?s)(?=..[\x00-\x0f]\x00)")


class OtherVersionError(Exception):
    """A file that another version of the program wrote."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What was read from a file: events, up to where, and what was in the way."""

    entries: list[bytes]
    end: int
    damaged: int = 0  # Places that could not be read and have something readable behind them.
    unreadable_bytes: int = 0  # At the very end.


def header(life: UUID, number: int) -> bytes:
    """Write what a file begins with."""
    head = _HEADER.pack(MAGIC, VERSION, life.bytes, number, 0)[:-4]
    return head + _LENGTH.pack(crc32(head))


def is_whole_header(data: bytes) -> bool:
    """Tell whether a file begins as it should; raise if that is how another version does."""
    if len(data) < HEADER_BYTES:
        return False
    magic, version, _, _, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC or checksum != crc32(data[: HEADER_BYTES - 4]):
        return False
    if version != VERSION:
        raise OtherVersionError(f"It is of version {version}, and this program knows {VERSION}.")
    return True


def seed_of(head: bytes) -> int:
    """Give what the checksums of a file's records begin with."""
    return _LENGTH.unpack_from(head, HEADER_BYTES - 4)[0]


def records(entries: Iterable[bytes], seed: int) -> bytes:
    """Write events one after another."""
    parts: list[bytes] = []
    for entry in entries:
        assert 0 < len(entry) <= ENTRY_BYTES_MAX
        length = _LENGTH.pack(len(entry))
        parts += (length, _LENGTH.pack(crc32(entry, crc32(length, seed))), entry)
    return b"".join(parts)


def taken(data: bytes, start: int, seed: int, *, count_max: int) -> Taken:
    """Read up to so many events from a place on."""
    entries: list[bytes] = []
    damaged = 0
    place = start
    while place < len(data) and len(entries) < count_max:
        end = _end_of_record(data, place, seed)
        if end is None:
            found = _next_record(data, place + 1, seed)
            if found is None:
                return Taken(
                    entries=entries, end=len(data), damaged=damaged, unreadable_bytes=len(data) - place
                )
            damaged += 1
            place = found
        else:
            entries.append(data[place + RECORD_BYTES : end])
            place = end
    return Taken(entries=entries, end=place, damaged=damaged)


def _end_of_record(data: bytes, place: int, seed: int) -> int | None:
    """Tell where the record ends that begins here, if one does."""
    begin = place + RECORD_BYTES
    if begin > len(data):
        return None
    length, checksum = _RECORD.unpack_from(data, place)
    end = begin + length
    if not 0 < length <= ENTRY_BYTES_MAX or end > len(data):
        return None
    if crc32(data[begin:end], crc32(data[place : place + 4], seed)) != checksum:
        return None
    return end


def _next_record(data: bytes, start: int, seed: int) -> int | None:
    """Search for a record; only where the four bytes of a length may be is it worth a checksum."""
    for match in _maybe_length.finditer(data, start):
        if _end_of_record(data, match.start(), seed) is not None:
            return match.start()
    return None
