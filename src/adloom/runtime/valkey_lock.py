"""A lock in Valkey that gives work one owner at a time, for as long as the owner renews its lease.

It keeps two workers from doing the same work. It does not protect data: whoever writes fences itself out by
a cursor or a version, because an owner that was thought dead may come back.
"""

from datetime import timedelta
from typing import Final

from adloom.runtime.valkey import Valkey, retry_if_disconnected, unavailable_when_away

LEASE: Final = timedelta(seconds=5)

# A worker that restarts under the same name takes its old lock back, once: two that live under one name would
# otherwise take it from each other for ever. The answer is 2 for a lock that was taken now.
ACQUIRE_SCRIPT: Final = """
local key, consumer, holder, millis, may_take_back = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local has = redis.call('GET', key)
if has == holder then
    redis.call('PEXPIRE', key, millis)
    return 1
end
local is_own = may_take_back == '1' and has and string.sub(has, 1, #consumer + 1) == consumer .. ' '
if has and not is_own then return 0 end
redis.call('SET', key, holder, 'PX', millis)
return 2
"""
RELEASE_SCRIPT: Final = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1"
)


class ValkeyLock:
    """One worker's claim to a lock; every call raises UnavailableError when Valkey is away."""

    def __init__(
        self, valkey: Valkey, key: str, *, consumer: str, incarnation: str, lease: timedelta = LEASE
    ) -> None:
        self.key = key
        self.holder = f"{consumer} {incarnation}"
        self.was_just_taken = False
        self._consumer = consumer
        self._lease_millis = int(lease.total_seconds() * 1000)
        self._may_take_back = True
        self._acquire = valkey.register_script(ACQUIRE_SCRIPT)
        self._release = valkey.register_script(RELEASE_SCRIPT)

    async def acquire(self) -> bool:
        """Take the lock or renew its lease; return whether it is ours."""
        arguments = [self._consumer, self.holder, self._lease_millis, int(self._may_take_back)]
        with unavailable_when_away(f"It is not known who holds {self.key}"):
            taken = int(await retry_if_disconnected(lambda: self._acquire([self.key], arguments)))
        self._may_take_back = False
        self.was_just_taken = taken > 1
        return taken > 0

    async def release(self) -> None:
        """Give the lock back if it is ours."""
        with unavailable_when_away(f"It is not known who holds {self.key}"):
            await self._release([self.key], [self.holder])
