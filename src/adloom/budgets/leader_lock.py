"""The lease that gives budget actors one owner at a time.

It keeps two workers from doing the same work. It is not what keeps a budget whole: the versions of the
states are, which fence out a worker that was thought dead.
"""

from datetime import timedelta
from typing import Final

from adloom.runtime.valkey import Valkey, retry_if_disconnected, unavailable_when_away

OWNER_KEY: Final = "adloom:brain:owner"
LEASE: Final = timedelta(seconds=5)

# Whoever starts anew under the same name takes back what its last life had, once: two that live under
# one name would otherwise take it from each other for ever.
TAKE: Final = """
local key, consumer, holder, millis, may_take_back = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local has = redis.call('GET', key)
if has == holder then
    redis.call('PEXPIRE', key, millis)
    return 1
end
local is_own = may_take_back == '1' and has and string.sub(has, 1, #consumer + 1) == consumer .. ' '
if has and not is_own then return 0 end
redis.call('SET', key, holder, 'PX', millis)
return 1
"""
GIVE_BACK: Final = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1"


class Ownership:
    """One worker's claim to the budget actors; UnavailableError when Valkey is away."""

    def __init__(self, valkey: Valkey, *, consumer: str, incarnation: str, lease: timedelta = LEASE) -> None:
        self._consumer = consumer
        self._holder = f"{consumer} {incarnation}"
        self._lease_millis = int(lease.total_seconds() * 1000)
        self._may_take_back = True
        self._take = valkey.register_script(TAKE)
        self._give_back = valkey.register_script(GIVE_BACK)

    async def take(self) -> bool:
        """Take the lease, or keep it; tell whether it is ours."""
        arguments = [self._consumer, self._holder, self._lease_millis, int(self._may_take_back)]
        with unavailable_when_away("It is not known who owns the budgets"):
            is_ours = await retry_if_disconnected(lambda: self._take([OWNER_KEY], arguments))
        self._may_take_back = False
        return bool(is_ours)

    async def give_back(self) -> None:
        """Give the lease back if it is ours."""
        with unavailable_when_away("It is not known who owns the budgets"):
            await self._give_back([OWNER_KEY], [self._holder])
