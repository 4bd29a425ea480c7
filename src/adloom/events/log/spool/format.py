"""The files of the spool: what they are called, and how entries lie in them.

    name     owner.life.number.spool
    header   magic 8, version u32, life 16, number u32, checksum u32
    record   length u32, checksum u32, entry

All numbers are little-endian. A record's checksum begins with the header's and covers the length and the entry. So
bytes that only look like a record, because a client has sent them or another file has left them, are none.

After a record that cannot be read we search for the next one that can. Where there is none the file ends: the process
died while it wrote, and had confirmed nothing of it.
"""

# pure

import re
import struct
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID
from zlib import crc32

import msgspec

DAMAGED: Final = ".damaged"  # Added to the name of a file that could not be read whole.
MAGIC: Final = b"ADLSPOOL"
VERSION: Final = 1
ENTRY_BYTES_MAX: Final = 2**20 - 1  # The search finds a length by its upper bits.

_NAME: Final = re.compile(r"([\w-]+)\.([0-9a-f]{32})\.(\d{6,})\.spool")
_HEADER: Final = struct.Struct("<8sI16sII")
_RECORD: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<I")
HEADER_BYTES: Final = _HEADER.size
RECORD_BYTES: Final = _RECORD.size

_maybe_length: Final = re.compile(rb"(?s)(?=..[\x00-\x0f]\x00)")


class SpoolFileName(msgspec.Struct, frozen=True, order=True):
    """The process that wrote a file, in which of its lives, and which file of that life. Sorts by age."""

    owner: str
    life: UUID
    number: int

    def __str__(self) -> str:
        return f"{self.owner}.{self.life.hex}.{self.number:06}.spool"


def escape_owner(process: str) -> str:
    return re.sub(r"[^\w-]", "_", process) or "_"


def parse_name(name: str) -> SpoolFileName | None:
    """Return None for a file that is not ours to drain."""
    match = _NAME.fullmatch(name)
    return match and SpoolFileName(match[1], UUID(match[2]), int(match[3]))


class OtherVersionError(Exception):
    """A file that another version of the program wrote."""


class ReadRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Entries read from a file, up to where, and what could not be read."""

    entries: list[bytes]
    end: int
    damaged: int = 0  # Places that could not be read and have something readable behind them.
    unreadable_bytes: int = 0  # At the very end.


def build_header(life: UUID, number: int) -> bytes:
    head = _HEADER.pack(MAGIC, VERSION, life.bytes, number, 0)[:-4]
    return head + _LENGTH.pack(crc32(head))


def is_whole_header(data: bytes) -> bool:
    """Return whether a file begins as it should; OtherVersionError if another version wrote it."""
    if len(data) < HEADER_BYTES:
        return False
    magic, version, _, _, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC or checksum != crc32(data[: HEADER_BYTES - 4]):
        return False
    if version != VERSION:
        raise OtherVersionError(f"It is of version {version}, and this program reads {VERSION}.")
    return True


def read_seed(head: bytes) -> int:
    """Return what the checksums of a file's records begin with."""
    return _LENGTH.unpack_from(head, HEADER_BYTES - 4)[0]


def measure_entries(entries: Sequence[bytes]) -> int:
    return sum(map(len, entries)) + RECORD_BYTES * len(entries)


def encode_records(entries: Iterable[bytes], seed: int) -> bytes:
    parts: list[bytes] = []
    for entry in entries:
        assert 0 < len(entry) <= ENTRY_BYTES_MAX
        length = _LENGTH.pack(len(entry))
        parts += (length, _LENGTH.pack(crc32(entry, crc32(length, seed))), entry)
    return b"".join(parts)


def read_records(data: bytes, start: int, seed: int, *, count_max: int) -> ReadRecords:
    entries: list[bytes] = []
    damaged = 0
    place = start
    while place < len(data) and len(entries) < count_max:
        end = _find_record_end(data, place, seed)
        if end is not None:
            entries.append(data[place + RECORD_BYTES : end])
            place = end
            continue
        following = _find_next_record(data, place + 1, seed)
        if following is None:
            unreadable = len(data) - place
            return ReadRecords(entries=entries, end=len(data), damaged=damaged, unreadable_bytes=unreadable)
        damaged += 1
        place = following
    return ReadRecords(entries=entries, end=place, damaged=damaged)


def _find_record_end(data: bytes, place: int, seed: int) -> int | None:
    """Return where the record that begins here ends, or None where none begins."""
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


def _find_next_record(data: bytes, start: int, seed: int) -> int | None:
    # Only where the four bytes of a length may be is it worth a checksum.
    places = (match.start() for match in _maybe_length.finditer(data, start))
    return next((place for place in places if _find_record_end(data, place, seed) is not None), None)
