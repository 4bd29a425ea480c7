"""Encodes the log entries of served offers; what the offers of a candidate share is encoded once."""

import struct
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.events.log.event import Served, encode_event

# A specimen is encoded with these values, and cut where they are. No other bytes of it can be the same: a text
# has no such byte, and an id of ours has its version in it.
_ANY_REQUEST: Final = UUID(bytes=b"\xfe" * 16)
_ANY_USER: Final = UUID(bytes=b"\xfd" * 16)
_ANY_TIME: Final = datetime(2000, 1, 1, microsecond=1, tzinfo=UTC)
_NANOS_A_MICRO: Final = 1_000
_SECOND_BITS: Final = 34
_timestamp: Final = struct.Struct(">HQ").pack  # Of MessagePack: its kind, then nanoseconds and seconds.
_TIMESTAMP_64: Final = 0xD7FF


class ServedEventEncoder:
    """Encodes `Served` events that differ in their request, time and user only."""

    __slots__ = ("_after", "_before_time", "_before_user", "_first")

    def __init__(  # noqa: PLR0913 - all that the events share
        self,
        *,
        banner_id: BannerId,
        placement_id: PlacementId,
        campaign_id: CampaignId,
        placement_type: str,
        final_price: Micros,
        winning_ecpm: Micros,
    ) -> None:
        specimen = encode_event(
            Served(
                request_id=RequestId(_ANY_REQUEST),
                slot=0,
                banner_id=banner_id,
                placement_id=placement_id,
                campaign_id=campaign_id,
                placement_type=placement_type,
                served_at=_ANY_TIME,
                user_id=_ANY_USER,
                final_price=final_price,
                winning_ecpm=winning_ecpm,
            )
        )
        self._first, _, rest = specimen.partition(_ANY_REQUEST.bytes)
        self._before_time, _, rest = rest.partition(msgspec.msgpack.encode(_ANY_TIME))
        self._before_user, _, self._after = rest.partition(_ANY_USER.bytes)

    def encode(self, request_id: bytes, served_at: datetime, second: int, user_id: bytes) -> bytes:
        """Encode one event; `second` is that of `served_at`, since the epoch."""
        return b"".join(
            (
                self._first,
                request_id,
                self._before_time,
                _timestamp(_TIMESTAMP_64, served_at.microsecond * _NANOS_A_MICRO << _SECOND_BITS | second),
                self._before_user,
                user_id,
                self._after,
            )
        )
