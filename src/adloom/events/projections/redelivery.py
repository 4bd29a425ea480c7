"""An entry that is appended again for one projection only: a follower that could not fold it the first time.

All others have folded the first one. To them it is nothing, and to the follower it is still the entry
that it was: under its first id the tables say what became of it.
"""

from typing import Final

import msgspec

from adloom.events.log.entry import LogEntry


class Redelivery(msgspec.Struct, frozen=True, array_like=True, tag_field="k", tag="again.v1"):
    """For whom, and which entry."""

    projection: str
    entry_id: str
    data: bytes


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Redelivery).decode


def wrap_redelivery(entry: LogEntry, projection: str) -> bytes:
    """Wrap an entry for one projection; what is wrapped already stays as it is."""
    if unwrap_redelivery(entry.data) is not None:
        return entry.data
    return _encode(Redelivery(projection=projection, entry_id=entry.id, data=entry.data))


def unwrap_redelivery(data: bytes) -> Redelivery | None:
    """Unwrap an entry; None for what is none of these."""
    try:
        return _decode(data)
    except msgspec.DecodeError:
        return None
