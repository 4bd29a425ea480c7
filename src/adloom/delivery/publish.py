"""Keeps one index per process up to date with the catalog.

A notice through Valkey brings a change within milliseconds. Notices can be lost, so the
keeper also looks at the catalog's version every second, and from time to time it compiles
everything anew, which would mend whatever an incremental update ever got wrong.
"""

import asyncio
import contextlib
from datetime import datetime, timedelta

import asyncpg
import structlog
from redis.exceptions import RedisError

from adloom.catalog.changes import NOTICE_CHANNEL
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.delivery import store
from adloom.delivery.index import Index, compiled, updated
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey

LOOK_SECONDS = 1.0
REBUILD_AFTER = timedelta(minutes=5)
RETRY_SECONDS = 0.5

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class IndexKeeper:
    """Holds the current index; readers take it once per request, so that they never see two."""

    def __init__(self, pool: Pool, valkey: Valkey, clock: Clock) -> None:
        self._pool = pool
        self._valkey = valkey
        self._clock = clock
        self._index: Index | None = None
        self._checked_at: datetime | None = None
        self._rebuilt_at: datetime | None = None
        self._noticed = asyncio.Event()
        self._is_there = asyncio.Event()
        self._is_cut_off = False

    @property
    def current(self) -> Index:
        """The index to answer from."""
        if self._index is None:
            raise UnavailableError("The index is not there yet.")
        return self._index

    @property
    def version(self) -> int | None:
        """The version of the catalog that is being served."""
        return None if self._index is None else self._index.version

    def age(self, now: datetime) -> timedelta | None:
        """Tell how long ago the index was last known to be the catalog's newest."""
        return None if self._checked_at is None else now - self._checked_at

    async def run(self) -> None:
        """Keep the index up to date until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            while True:
                self._noticed.clear()
                await self._try_refresh()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._noticed.wait()

    async def wait_until_there(self, *, seconds_max: float) -> None:
        """Wait for the first index, but not for ever: without one the answer is 503."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds_max):
                await self._is_there.wait()

    async def refresh(self) -> None:
        """Bring the index to the catalog's version."""
        now = self._clock.now()
        async with self._pool.acquire() as connection:
            if self._index is None or self._rebuilt_at is None or now - self._rebuilt_at >= REBUILD_AFTER:
                self._index = compiled(await store.snapshot(connection))
                self._rebuilt_at = now
            elif await store.version(connection) != self._index.version:
                changes = await store.changes(connection, since=self._index.version)
                if changes is None:
                    self._index = compiled(await store.snapshot(connection))
                else:
                    self._index = updated(self._index, changes)
        self._checked_at = now
        self._is_there.set()

    async def _try_refresh(self) -> None:
        try:
            await self.refresh()
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            # The old index goes on serving; its age tells.
            if not self._is_cut_off:
                log.warning("index_cut_off_from_catalog", error=repr(error))
            self._is_cut_off = True
        else:
            if self._is_cut_off:
                log.info("index_reached_catalog_again", version=self.version)
            self._is_cut_off = False

    async def _listen(self) -> None:
        while True:
            try:
                async with self._valkey.pubsub() as subscription:
                    await subscription.subscribe(NOTICE_CHANNEL)
                    while True:
                        await subscription.get_message(timeout=None)
                        self._noticed.set()
            except (RedisError, OSError) as error:
                log.warning("index_notices_interrupted", error=repr(error))
                await asyncio.sleep(RETRY_SECONDS)
