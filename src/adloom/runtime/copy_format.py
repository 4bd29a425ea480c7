"""Values in the binary form of PostgreSQL's COPY; before each is its size.

The driver takes rows too, but encodes them value by value, which takes twice as long.
"""

# pure

from collections.abc import Sequence
from datetime import UTC, date, datetime
from ipaddress import ip_interface
from struct import Struct
from typing import Final
from uuid import UUID

BEGIN: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END: Final = b"\xff\xff"
NULL: Final = b"\xff\xff\xff\xff"
ID_SIZE: Final = b"\0\0\0\x10"
EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_FIRST_DAY: Final = EPOCH.toordinal()
_TEXT_OID: Final = 25
_FAMILIES: Final = {4: 2, 6: 3}  # Of addresses, by their version.
_pack_long = Struct(">iq").pack
_pack_integer = Struct(">ii").pack
_pack_short = Struct(">ih").pack
_pack_array = Struct(">iiiii").pack


def _encode_value(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value


def encode_text(text: str | None) -> bytes:
    return NULL if text is None else _encode_value(text.encode())


def encode_id(one: UUID | None) -> bytes:
    return NULL if one is None else ID_SIZE + one.int.to_bytes(16, "big")


def encode_boolean(value: bool) -> bytes:  # noqa: FBT001 - a value
    return b"\0\0\0\1\1" if value else b"\0\0\0\1\0"


def encode_short(number: int | None) -> bytes:
    return NULL if number is None else _pack_short(2, number)


def encode_integer(number: int | None) -> bytes:
    return NULL if number is None else _pack_integer(4, number)


def encode_long(number: int) -> bytes:
    return _pack_long(8, number)


def encode_date(day: date) -> bytes:
    return _pack_integer(4, day.toordinal() - _FIRST_DAY)


def encode_moment(at: datetime) -> bytes:
    since = at - EPOCH
    return _pack_long(8, (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


def encode_texts(texts: Sequence[str]) -> bytes:
    """Encode an array of one dimension, whose first index is 1."""
    return _encode_value(_pack_array(1, 0, _TEXT_OID, len(texts), 1) + b"".join(map(encode_text, texts)))


def encode_network(text: str | None) -> bytes:
    if text is None:
        return NULL
    address = ip_interface(text)
    head = bytes((_FAMILIES[address.version], address.network.prefixlen, 0, len(address.packed)))
    return _encode_value(head + address.packed)
