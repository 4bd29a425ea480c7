"""Runs parts of a worker (actors, followers) while it holds their lock: at most one worker does."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol, TypeAlias

import structlog

from adloom.core.errors import UnavailableError
from adloom.runtime.loops import pause, pause_until_next

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
        self.is_leader = False
        # A plain counter, read by a collector.
        self.terms = 0

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                if await self._lock.acquire():
                    await self._lead(stop)
            except UnavailableError as error:
                log.warning("brains_wait", actors=self._name, reason=error.detail)
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
