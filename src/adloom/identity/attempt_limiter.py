"""Slows down guessing passwords, without keeping their owners out.

Attempts count against the account and not against an address: addresses are cheap. But an attacker must not lock a
person out, so networks that the person has logged in from before are counted apart, each for itself.

All control processes count together, in Valkey:

    adloom:attempts:<what>:<hash of what was tried>    the time until which its attempts are used up, in milliseconds

What was tried is a person, or an address of e-mail that nobody has, so it is there as a keyed hash, and only as long as
its attempts are not all back. While Valkey is away each process counts alone.
"""

from datetime import datetime
from hashlib import blake2b
from typing import Final

import structlog

from adloom.core.errors import RateLimitedError
from adloom.runtime.http.rate_limit import RateLimiter
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

ATTEMPTS_AT_ONCE_MAX: Final = 10
ATTEMPTS_PER_MINUTE: Final = 2
REFUSAL: Final = "Too many failed attempts. Wait before you try again."
MINUTE_MILLIS: Final = 60_000
SECOND_MILLIS: Final = 1_000
_HASH_BYTES: Final = 16
# KEYS: what was tried. ARGV: now, how long it takes until one attempt is back, and until all are.
# Returns how long to wait, or 0.
TAKE_SCRIPT: Final = """
local now, one, all = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
-- It cannot be further ahead, unless a clock was set back.
used = math.min(math.max(used, now), now + all)
if used + one > now + all then
    return used + one - now - all
end
redis.call('SET', KEYS[1], string.format('%.0f', used + one), 'PX', all)
return 0
"""
GIVE_BACK_SCRIPT: Final = """
local used = redis.call('GET', KEYS[1])
if used then
    redis.call('SET', KEYS[1], string.format('%.0f', used - ARGV[1]), 'KEEPTTL')
end
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class SharedAttemptLimiter:
    """The failed attempts of all control processes, by what was tried; those of this one are counted here too."""

    def __init__(
        self,
        valkey: Valkey,
        name: str,
        *,
        secret: str,
        at_once_max: int = ATTEMPTS_AT_ONCE_MAX,
        per_minute: int = ATTEMPTS_PER_MINUTE,
    ) -> None:
        self._own = RateLimiter(per_minute, burst=at_once_max, refusal=REFUSAL)
        self._name = name
        key = blake2b(secret.encode(), digest_size=32, person=b"adloom-attempts").digest()
        self._start = blake2b(key=key, digest_size=_HASH_BYTES)
        self._one_millis = MINUTE_MILLIS // per_minute
        self._all_millis = at_once_max * self._one_millis
        self._take = valkey.register_script(TAKE_SCRIPT)
        self._give_back = valkey.register_script(GIVE_BACK_SCRIPT)
        self._is_away = False

    async def take(self, tried: str, *, now: datetime) -> None:
        """Count an attempt before it is made, so that many at once are no way around it."""
        self._own.check(tried, now=now)
        arguments = [int(now.timestamp() * SECOND_MILLIS), self._one_millis, self._all_millis]
        try:
            wait_millis = int(await self._take(keys=[self._name_key(tried)], args=arguments))
        except VALKEY_AWAY as error:
            self._note_away(error)
            return
        self._is_away = False
        if wait_millis > 0:
            raise RateLimitedError(REFUSAL, retry_after_seconds=wait_millis // SECOND_MILLIS + 1)

    async def give_back(self, tried: str) -> None:
        """Take back the count of an attempt that was right."""
        self._own.give_back(tried)
        if self._is_away:
            return
        try:
            await self._give_back(keys=[self._name_key(tried)], args=[self._one_millis])
        except VALKEY_AWAY as error:
            self._note_away(error)

    def _note_away(self, error: Exception) -> None:
        if not self._is_away:
            log.warning("attempts_not_shared", name=self._name, reason=repr(error))
        self._is_away = True

    def _name_key(self, tried: str) -> str:
        mac = self._start.copy()
        mac.update(tried.encode())
        return f"adloom:attempts:{self._name}:{mac.hexdigest()}"
