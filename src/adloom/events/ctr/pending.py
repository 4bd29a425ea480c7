"""Pending examples: impressions that wait until it is known whether they are clicked. Pure."""

# pure

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from adloom.auction.score import Signals
from adloom.auction.training import Example

# Much more than the weights need, and 1 % of a core.
EXAMPLES_PER_SECOND_MAX: Final = 500
BURST_SECONDS: Final = 10  # For so long a burst may use what was left over.
MILLIS: Final = 1_000
DAYS_DIGITS_MAX: Final = 6

Offer: TypeAlias = tuple[UUID, int]
T = TypeVar("T")


class PendingExample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An impression of an auction's offer, with the context of its prediction."""

    request_id: UUID
    slot: int
    seen_ms: int  # When the log took it.
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


def encode_pending(pending: Sequence[PendingExample]) -> bytes:
    return _encoder.encode(pending)


def decode_pending(data: bytes) -> list[PendingExample]:
    return _decoder.decode(data)


def build_example(pending: PendingExample, clicked_ms: int | None, *, wait_ms: int) -> Example:
    """Build an example: it is clicked if its click came in time, whenever it is looked up."""
    return Example(
        pending.placement_key,
        pending.banner_key,
        pending.campaign_key,
        Signals(
            placement_type=pending.placement_type,
            segment=pending.segment,
            last_purchase_days=pending.last_purchase_days,
            device=pending.device,
            country=pending.country,
            hour=pending.hour,
        ),
        is_clicked=clicked_ms is not None and clicked_ms <= pending.seen_ms + wait_ms,
    )


def parse_purchase_days(context: Mapping[str, str]) -> int | None:
    text = context.get("lastPurchaseDays", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DAYS_DIGITS_MAX else None


class ExampleSampler:
    """Limits examples per second, by the log's time; of more it takes an even sample."""

    def __init__(self, per_second_max: int = EXAMPLES_PER_SECOND_MAX) -> None:
        self._per_second_max = per_second_max
        self._allowance = float(per_second_max * BURST_SECONDS)
        self._filled_ms = 0

    def sample(self, found: Sequence[T], *, now_ms: int) -> Sequence[T]:
        """Return as many as the limit allows, evenly."""
        gained = max(0, now_ms - self._filled_ms) * self._per_second_max / MILLIS
        self._filled_ms = max(self._filled_ms, now_ms)
        self._allowance = min(self._allowance + gained, self._per_second_max * BURST_SECONDS)
        count = min(len(found), int(self._allowance))
        self._allowance -= count
        if count == len(found):
            return found
        return [found[place * len(found) // count] for place in range(count)]
