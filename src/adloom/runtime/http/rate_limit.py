"""Rate limits: one token bucket per client; and how many requests of one caller run at once.

Requests over the bound of a caller wait: ten slow statistics of one account must leave connections for the others.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

import msgspec

from adloom.core.caller import Caller
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


WAIT_SECONDS_MAX: Final = 20.0
WAITING_MAX: Final = 200  # Of one caller; beyond, requests are refused at once.


class CallerLimits:
    """The requests that are under way in this process, by caller."""

    def __init__(self, *, at_once_max: int, per_minute: int) -> None:
        self._at_once_max = at_once_max
        self._limiter = RateLimiter(per_minute)
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._present: dict[str, int] = {}

    @property
    def present(self) -> int:
        """How many requests run or wait."""
        return sum(self._present.values())

    @asynccontextmanager
    async def hold(self, caller: Caller, *, now: datetime) -> AsyncGenerator[None]:
        """Wait for a turn, and keep it; raises RateLimitedError."""
        # All users and keys of an account count together.
        key = caller.subject if caller.account_id is None else f"{caller.role}:{caller.account_id}"
        self._limiter.check(key, now=now)
        if self._present.get(key, 0) >= self._at_once_max + WAITING_MAX:
            raise self._make_refusal()
        self._present[key] = self._present.get(key, 0) + 1
        turns = self._turns.setdefault(key, asyncio.Semaphore(self._at_once_max))
        try:
            try:
                async with asyncio.timeout(WAIT_SECONDS_MAX):
                    await turns.acquire()
            except TimeoutError:
                raise self._make_refusal() from None
            try:
                yield
            finally:
                turns.release()
        finally:
            self._present[key] -= 1
            if not self._present[key]:
                del self._present[key], self._turns[key]

    def _make_refusal(self) -> RateLimitedError:
        return RateLimitedError(
            f"Too many of your requests are under way: {self._at_once_max} run at once. Send them one after another.",
            retry_after_seconds=1,
        )
