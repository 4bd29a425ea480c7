"""Locks in Valkey, and what runs while a worker holds one.

One worker does the work, and another goes on when it no longer renews its lease.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, Protocol, TypeAlias, cast

import structlog

from adloom.core.errors import UnavailableError
from adloom.runtime.loops import OUTAGE_SECONDS, RepeatedLine, pause, pause_until_next
from adloom.runtime.valkey import Valkey, raise_if_away, retry_if_disconnected

RENEW_SECONDS: Final = 2.0  # Twice while the lock lasts.
STANDBY_SECONDS: Final = 1.0

Run: TypeAlias = Callable[[asyncio.Event], Coroutine[Any, Any, None]]

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class LeaderLock(Protocol):
    """A lock that one worker holds at a time."""

    @property
    def was_just_taken(self) -> bool:
        """Whether the last `acquire` found it free, and not held by this worker."""
        ...

    async def acquire(self) -> bool: ...

    async def release(self) -> None: ...


class LeaderLoop:
    """Runs `parts` while this worker leads; they stop when it loses the lock. Log lines have its name: a worker has several."""

    def __init__(
        self,
        lock: LeaderLock,
        parts: Sequence[Run],
        *,
        name: str,
        renew_seconds: float = RENEW_SECONDS,
        standby_seconds: float = STANDBY_SECONDS,
    ) -> None:
        self._lock = lock
        self._parts = parts
        self._name = name
        self._renew_seconds = renew_seconds
        self._standby_seconds = standby_seconds
        self._log_waiting = RepeatedLine(log, "brains_wait", seconds=OUTAGE_SECONDS)
        self.is_leader = False
        # A plain counter, read by a collector.
        self.terms = 0

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                if await self._lock.acquire():
                    await self._lead(stop)
            except UnavailableError as error:
                self._log_waiting(actors=self._name, reason=error.detail)
            except Exception:
                # The outermost loop: whatever a part failed with, all parts start again from the stored states.
                log.exception("brains_failed", actors=self._name)
            if not stop.is_set():
                await pause(self._standby_seconds, stop)

    async def _lead(self, stop: asyncio.Event) -> None:
        log.info("brains_begin", actors=self._name)
        self.terms += 1
        self.is_leader = True
        over = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                for part in self._parts:
                    group.create_task(part(over))
                await self._renew_lock(stop)
                self.is_leader = False
                over.set()
        finally:
            self.is_leader = False
            with contextlib.suppress(UnavailableError):
                await self._lock.release()
            log.info("brains_end", actors=self._name)

    async def _renew_lock(self, stop: asyncio.Event) -> None:
        """Renew the lock until `stop` is set, or until another worker holds it, or may have held it meanwhile."""
        is_leader = True
        while is_leader and not stop.is_set():
            await pause_until_next(self._renew_seconds, stop)
            # If Valkey is unreachable, no other worker can take the lock; carry on.
            # State versions fence out a second leader.
            with contextlib.suppress(UnavailableError):
                is_leader = await self._lock.acquire() and not self._lock.was_just_taken


LEASE: Final = timedelta(seconds=5)

# A lock that was renewed with another so recently is not renewed by a command of its own. At worst that and the time
# between two renewals, 2 s, pass without one: half a lease. So long one waits for the other's answer, too.
RENEWED_SECONDS: Final = 0.5

# A worker that restarts under the same name takes its old lock back, once: two that live under one name would
# otherwise take it from each other for ever. The first answer is 2 for a lock that was taken now; for one whose lease
# has ended while nobody else took it, 1. The others are those of the locks that are renewed with it.
ACQUIRE_SCRIPT: Final = """
local key, consumer, holder, millis, may_take_back = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function renew(one, its_holder, its_millis)
    if redis.call('GET', one) ~= its_holder then return 0 end
    return redis.call('PEXPIRE', one, its_millis)
end

local function acquire()
    if renew(key, holder, millis) == 1 then return 1 end
    local has = redis.call('GET', key)
    local is_own = may_take_back == '1' and has and string.sub(has, 1, #consumer + 1) == consumer .. ' '
    if has and not is_own then return 0 end
    redis.call('SET', key, holder, 'PX', millis)
    return redis.call('SET', key .. ':last', holder, 'GET') == holder and 1 or 2
end

local answers = {acquire()}
for i = 2, #KEYS do answers[i] = renew(KEYS[i], ARGV[2 * i + 1], ARGV[2 * i + 2]) end
return answers
"""
RELEASE_SCRIPT: Final = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1], KEYS[1] .. ':last') end return 1"


class HeldLocks:
    """The locks that one worker holds: the command that renews one of them renews all."""

    def __init__(self, *, renewed_seconds: float = RENEWED_SECONDS) -> None:
        self._renewed_seconds = renewed_seconds
        self._renewed_at: dict[ValkeyLock, float] = {}
        self._answered: dict[
            ValkeyLock, asyncio.Event
        ] = {}  # Of the command that renews a lock with another.

    def is_renewed(self, lock: "ValkeyLock", now: float) -> bool:
        """Return whether a lock was renewed just now, with another or by itself."""
        return now - self._renewed_at.get(lock, -math.inf) < self._renewed_seconds

    @contextmanager
    def renew_others(self, lock: "ValkeyLock") -> Generator[list["ValkeyLock"]]:
        """Yield the other locks that the command renews; a call for one of them waits for its answer."""
        answered = asyncio.Event()
        others = [other for other in self._renewed_at if other is not lock]
        self._answered |= dict.fromkeys(others, answered)
        try:
            yield others
        finally:
            answered.set()

    async def wait_renewed(self, lock: "ValkeyLock") -> None:
        """Wait for the answer to a command that renews a lock with another, if there is one.

        Not for long: its connection may be dead, and what that takes to find out is as long as a lease.
        """
        if lock in self._answered:
            await pause(self._renewed_seconds, self._answered[lock])

    def add(self, lock: "ValkeyLock", now: float) -> None:
        self._renewed_at[lock] = now

    def note_renewed(self, lock: "ValkeyLock", at: float) -> None:
        """Note when a lock was renewed with another, unless it was released meanwhile."""
        if lock in self._renewed_at:
            self._renewed_at[lock] = at

    def remove(self, lock: "ValkeyLock") -> None:
        self._renewed_at.pop(lock, None)
        self._answered.pop(lock, None)


class ValkeyLock:
    """One worker's claim to a lock, for as long as it renews its lease; UnavailableError when Valkey is away.

    It keeps two workers from doing the same work. It does not protect data: an owner that was thought dead
    may come back, so a late write is refused by a cursor or a version.
    """

    def __init__(  # noqa: PLR0913 - the last is for tests
        self,
        valkey: Valkey,
        key: str,
        *,
        consumer: str,
        incarnation: str,
        held: HeldLocks | None = None,
        lease: timedelta = LEASE,
    ) -> None:
        self.key = key
        self.holder = f"{consumer} {incarnation}"
        self.lease_millis = int(lease.total_seconds() * 1000)
        self.was_just_taken = False
        self._consumer = consumer
        self._held = held or HeldLocks(renewed_seconds=0)
        self._may_take_back = True
        self._acquire = valkey.register_script(ACQUIRE_SCRIPT)
        self._release = valkey.register_script(RELEASE_SCRIPT)

    async def acquire(self) -> bool:
        """Take the lock or renew its lease; return whether it is ours."""
        self.was_just_taken = False
        await self._held.wait_renewed(self)
        now = asyncio.get_running_loop().time()
        if self._held.is_renewed(self, now):
            return True
        with self._held.renew_others(self) as others:
            taken, *renewed = await self._ask(others)
            for other, is_renewed in zip(others, renewed, strict=True):
                self._held.note_renewed(other, now if is_renewed else -math.inf)
        self._may_take_back = False
        self.was_just_taken = taken > 1
        if taken:
            self._held.add(self, now)
        else:
            self._held.remove(self)
        return taken > 0

    def doubt(self) -> None:
        """Ask Valkey at the next `acquire`, however recently the lock was renewed: another seems to have it."""
        self._held.note_renewed(self, -math.inf)

    async def _ask(self, others: Sequence["ValkeyLock"]) -> list[int]:
        keys = [self.key, *(other.key for other in others)]
        arguments = [self._consumer, self.holder, self.lease_millis, int(self._may_take_back)]
        for other in others:
            arguments += (other.holder, other.lease_millis)
        with raise_if_away(f"It is not known who holds {self.key}"):
            return cast("list[int]", await retry_if_disconnected(lambda: self._acquire(keys, arguments)))

    async def release(self) -> None:
        self._held.remove(self)
        with raise_if_away(f"It is not known who holds {self.key}"):
            await self._release([self.key], [self.holder])
