"""Rate limits: one token bucket per client."""

from collections import OrderedDict
from datetime import datetime
from typing import Final

import msgspec

from adloom.core.errors import RateLimitedError

SECONDS_PER_MINUTE: Final = 60
# The least recently seen client beyond this starts afresh; by then its bucket is full or we are flooded.
CLIENTS_MAX: Final = 50_000


class TokenBucket(msgspec.Struct, frozen=True):
    """The permits a client has left, as of a moment."""

    permits: float
    as_of: datetime


class PermitResult(msgspec.Struct, frozen=True):
    """A bucket after one request; `wait_seconds` is zero where the request may pass."""

    bucket: TokenBucket
    wait_seconds: float


def take_permit(
    bucket: TokenBucket | None, *, permits_per_minute: int, now: datetime, burst: int | None = None
) -> PermitResult:
    """Take one permit; a bucket holds a burst, by default a minute's worth, and fills evenly."""
    per_second = permits_per_minute / SECONDS_PER_MINUTE
    permits = float(permits_per_minute if burst is None else burst)
    if bucket is not None:
        elapsed_seconds = max(0.0, (now - bucket.as_of).total_seconds())
        permits = min(permits, bucket.permits + elapsed_seconds * per_second)
    if permits < 1:
        return PermitResult(TokenBucket(permits, now), (1 - permits) / per_second)
    return PermitResult(TokenBucket(permits - 1, now), 0)


class RateLimiter:
    """The buckets of this process."""

    def __init__(self, permits_per_minute: int) -> None:
        self._permits_per_minute = permits_per_minute
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def check(self, client: str, *, now: datetime) -> None:
        result = take_permit(self._buckets.get(client), permits_per_minute=self._permits_per_minute, now=now)
        self._buckets[client] = result.bucket
        self._buckets.move_to_end(client)
        if len(self._buckets) > CLIENTS_MAX:
            self._buckets.popitem(last=False)
        if result.wait_seconds > 0:
            raise RateLimitedError(
                "Too many attempts from your address. Wait before you try again.",
                retry_after_seconds=int(result.wait_seconds) + 1,
            )
