"""Impressions that wait until it is known whether they are clicked. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from adloom.auction.score import Signals
from adloom.auction.training import Example

# What waits is bounded by how much is let in: this is much more than weights need, and 1 % of a core.
EXAMPLES_PER_SECOND_MAX: Final = 500
ROOM_SECONDS: Final = 10  # A burst may use what was left over for so long.
MILLIS: Final = 1_000
DAYS_DIGITS_MAX: Final = 6

Offer: TypeAlias = tuple[UUID, int]
T = TypeVar("T")


class PendingExample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An impression of an auction's offer, with what was known when its CTR was predicted."""

    request_id: UUID
    slot: int
    seen_ms: int  # When the ledger took it.
    placement_key: int
    banner_key: int
    campaign_key: int
    placement_type: str
    segment: str | None = None
    last_purchase_days: int | None = None
    device: str | None = None
    country: str | None = None
    hour: int | None = None

    @property
    def offer(self) -> Offer:
        """What its click names."""
        return self.request_id, self.slot


_encoder: Final = msgspec.msgpack.Encoder(uuid_format="bytes")
_decoder: Final = msgspec.msgpack.Decoder[list[PendingExample]](list[PendingExample])


def encode_pending(waiting: Sequence[PendingExample]) -> bytes:
    """Write down what waits."""
    return _encoder.encode(waiting)


def decode_pending(data: bytes) -> list[PendingExample]:
    """Read what waits."""
    return _decoder.decode(data)


def build_example(waiting: PendingExample, clicked_ms: int | None, *, wait_ms: int) -> Example:
    """Make an example: clicked is what was clicked in time, whenever that is looked at."""
    return Example(
        waiting.placement_key,
        waiting.banner_key,
        waiting.campaign_key,
        Signals(
            placement_type=waiting.placement_type,
            segment=waiting.segment,
            last_purchase_days=waiting.last_purchase_days,
            device=waiting.device,
            country=waiting.country,
            hour=waiting.hour,
        ),
        is_clicked=clicked_ms is not None and clicked_ms <= waiting.seen_ms + wait_ms,
    )


def parse_purchase_days(context: Mapping[str, str]) -> int | None:
    """Read how long ago a reader has bought something, from what a request said."""
    said = context.get("lastPurchaseDays", "")
    return int(said) if said.isascii() and said.isdecimal() and len(said) <= DAYS_DIGITS_MAX else None


class ExampleSampler:
    """Lets so many examples a second in, by the ledger's time; of more it takes every so manieth."""

    def __init__(self, per_second_max: int = EXAMPLES_PER_SECOND_MAX) -> None:
        self._per_second_max = per_second_max
        self._room = float(per_second_max * ROOM_SECONDS)
        self._filled_ms = 0

    def sample(self, found: Sequence[T], *, now_ms: int) -> Sequence[T]:
        """Take what there is room for, evenly."""
        gained = max(0, now_ms - self._filled_ms) * self._per_second_max / MILLIS
        self._filled_ms = max(self._filled_ms, now_ms)
        self._room = min(self._room + gained, self._per_second_max * ROOM_SECONDS)
        count = min(len(found), int(self._room))
        self._room -= count
        if count == len(found):
            return found
        return [found[place * len(found) // count] for place in range(count)]
