"""Rate limits: one token bucket per client."""

from collections import OrderedDict
from datetime import datetime
from typing import Final

import msgspec

from adloom.core.errors import RateLimitedError

SECONDS_PER_MINUTE: Final = 60
# The least recently seen client beyond this starts afresh; by then its bucket is full or we are flooded.
CLIENTS_MAX: Final = 50_000
REFUSAL: Final = "Too many attempts from your address. Wait before you try again."


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

    def __init__(self, permits_per_minute: int, *, burst: int | None = None, refusal: str = REFUSAL) -> None:
        self._permits_per_minute = permits_per_minute
        self._burst = permits_per_minute if burst is None else burst
        self._refusal = refusal
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def check(self, client: str, *, now: datetime) -> None:
        """Take a permit of a client; raises RateLimitedError where it has none."""
        known = self._buckets.get(client)
        result = take_permit(known, permits_per_minute=self._permits_per_minute, now=now, burst=self._burst)
        self._buckets[client] = result.bucket
        self._buckets.move_to_end(client)
        if len(self._buckets) > CLIENTS_MAX:
            self._buckets.popitem(last=False)
        if result.wait_seconds > 0:
            raise RateLimitedError(self._refusal, retry_after_seconds=int(result.wait_seconds) + 1)

    def give_back(self, client: str) -> None:
        bucket = self._buckets.get(client)
        if bucket is not None:
            self._buckets[client] = TokenBucket(min(bucket.permits + 1, self._burst), bucket.as_of)
