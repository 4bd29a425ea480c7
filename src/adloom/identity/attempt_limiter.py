"""Slows down guessing passwords, without keeping their owners out.

Attempts count against the account and not against an address: addresses are cheap. But an attacker must not lock a
person out, so networks that the person has logged in from before are counted apart, each for itself.
"""

from collections import OrderedDict
from datetime import datetime
from typing import Final

from adloom.core.errors import RateLimitedError
from adloom.runtime.http.rate_limit import TokenBucket, take_permit

ATTEMPTS_AT_ONCE_MAX: Final = 10
ATTEMPTS_PER_MINUTE: Final = 2
# The account that was tried least recently beyond this starts afresh.
ACCOUNTS_MAX: Final = 50_000


class AttemptLimiter:
    """The failed attempts of this process, by what was tried."""

    def __init__(
        self, *, at_once_max: int = ATTEMPTS_AT_ONCE_MAX, per_minute: int = ATTEMPTS_PER_MINUTE
    ) -> None:
        self._at_once_max = at_once_max
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, tried: str, *, now: datetime) -> None:
        """Count an attempt before it is made, so that many at once are no way around it."""
        result = take_permit(
            self._buckets.get(tried), permits_per_minute=self._per_minute, burst=self._at_once_max, now=now
        )
        if result.wait_seconds > 0:
            raise RateLimitedError(
                "Too many failed attempts. Wait before you try again.",
                retry_after_seconds=int(result.wait_seconds) + 1,
            )
        self._buckets[tried] = result.bucket
        self._buckets.move_to_end(tried)
        if len(self._buckets) > ACCOUNTS_MAX:
            self._buckets.popitem(last=False)

    def give_back(self, tried: str) -> None:
        """Take back the count of an attempt that was right."""
        bucket = self._buckets.get(tried)
        if bucket is not None:
            self._buckets[tried] = TokenBucket(min(bucket.permits + 1, self._at_once_max), bucket.as_of)
