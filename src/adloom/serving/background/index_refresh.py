"""Keeps one index per process up to date with the catalog.

A notice through Valkey brings a change within milliseconds. Notices can be lost, so the
keeper also looks at the catalog's version twice a second, and from time to time it compiles
everything anew, which would mend whatever an incremental update ever got wrong.
"""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable, Generator
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

import structlog
from redis.asyncio.client import PubSub

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.resource.changes import NOTICE_CHANNEL, read_version
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.serving.auction.market import Markets
from adloom.serving.background.cap_counts import CapCounts
from adloom.serving.eligibility.caps import CapTracker
from adloom.serving.eligibility.exclusions import Exclusions
from adloom.serving.eligibility.placement_state import PlacementState, PlacementStates
from adloom.serving.index import store
from adloom.serving.index.compile import Interner, compile_placement
from adloom.serving.index.index import EMPTY, IdSet, Index, IndexedPlacement, replace_placements
from adloom.serving.index.rows import Caps
from adloom.serving.index.steps import Slicer

LOOK_SECONDS = 0.5  # A change is served within a second, with a notice or without.
REBUILD_AFTER = timedelta(minutes=5)
RETRY_SECONDS = 0.5
# A subscription that hears nothing for so long asks, and has as long to hear an answer. Otherwise one whose
# other end is gone without a word would listen for ever.
QUIET_SECONDS = 5.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class IndexRefresher:
    """Holds the current index; readers take it once per request, so that they never see two."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        pool: Pool,
        valkey: Valkey,
        clock: Clock,
        *,
        states: PlacementStates | None = None,
        markets: Markets | None = None,
        swapped: Callable[[Index], None] | None = None,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._pool = pool
        self._valkey = valkey
        self._clock = clock
        self._quiet_seconds = quiet_seconds
        self.states = states or PlacementStates()
        self.markets = markets or Markets(self.states)
        self._swapped = swapped
        self.caps = CapTracker()
        self._cap_counts = CapCounts()
        self._caps: dict[int, Caps] = {}
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

    async def wait_until_ready(self, *, seconds_max: float) -> None:
        """Wait for the first index, but not for ever: without one the answer is 503."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds_max):
                await self._is_there.wait()

    async def refresh(self) -> None:
        """Bring the index to the catalog's version, and learn who has reached a cap."""
        now = self._clock.now()
        async with self._pool.acquire() as connection:
            if self._index is None or self._rebuilt_at is None or now - self._rebuilt_at >= REBUILD_AFTER:
                await self._rebuild(connection, now)
            elif (version := await read_version(connection)) != self._index.version:
                since = self._index.version
                # A catalog that went back comes from a backup: what we know of it is void.
                if version < since or not await self._update(connection, self._index, now):
                    await self._rebuild(connection, now)
            await self._update_caps(connection, now)
        self._checked_at = now
        self._is_there.set()

    async def rebuild(self) -> None:
        """Read and compile everything anew."""
        self._rebuilt_at = None
        await self.refresh()

    async def _rebuild(self, connection: Connection, now: datetime) -> None:
        with _pause_gc():
            async with store.read_one_version(connection) as version:
                placements, states = await self._compile(connection, None, now)
                index = replace_placements(
                    EMPTY,
                    version=version,
                    gone=(),
                    placements=placements,
                    banner_ids=await _add_ids(IdSet(), store.iter_banner_ids(connection, None)),
                    campaign_ids=await _add_ids(IdSet(), store.iter_campaign_ids(connection, None)),
                )
            await self._swap(index, states, now)
        self._rebuilt_at = now
        self._cap_counts.recheck_settled()

    async def _update(self, connection: Connection, index: Index, now: datetime) -> bool:
        async with store.read_one_version(connection) as version:
            touched = await store.read_changed_keys(connection, since=index.version)
            if touched is None:
                return False
            placements, states = await self._compile(connection, touched.placement_keys, now)
            newer = replace_placements(
                index,
                version=version,
                gone=touched.placement_keys,
                placements=placements,
                banner_ids=await _add_ids(
                    index.banner_ids, store.iter_banner_ids(connection, touched.banner_keys)
                ),
                campaign_ids=await _add_ids(
                    index.campaign_ids, store.iter_campaign_ids(connection, touched.campaign_keys)
                ),
            )
        await self._swap(newer, states, now)
        return True

    async def _compile(
        self, connection: Connection, keys: store.Keys, now: datetime
    ) -> tuple[list[IndexedPlacement], list[PlacementState]]:
        """Compile placements and prepare their states; what is as it was stays what it is, answers and all."""
        slices, shared = Slicer(monotonic), Interner()
        before = (self._index or EMPTY).by_key
        placements: list[IndexedPlacement] = []
        states: list[PlacementState] = []
        async for rows in store.iter_placements(connection, keys):
            placement = await slices.run(compile_placement(rows, shared))
            if placement == before.get(placement.key):
                placement = before[placement.key]
            else:
                states.append(await slices.run(self.states.prepare(placement, now=now)))
            placements.append(placement)
        return placements, states

    async def _swap(self, index: Index, states: list[PlacementState], now: datetime) -> None:
        top_sets = await Slicer(monotonic).run(self.markets.prepare(index, now=now))
        # From here on without a pause: a request sees all of it, or nothing.
        self.states.install(index, states)
        self.markets.install(top_sets)
        self._index = index
        self._caps = {
            key: caps for placement in index.by_key.values() for key, caps in placement.caps.items()
        }
        if self._swapped is not None:
            self._swapped(index)

    async def _update_caps(self, connection: Connection, now: datetime) -> None:
        counts = await self._cap_counts.read(connection, self._caps, now)
        self.caps.update(self._caps, counts, second=int(now.timestamp()))
        self.states.exclude(Exclusions(campaigns=self.caps.find_reached()))

    async def _try_refresh(self) -> None:
        try:
            await self.refresh()
        except POSTGRES_AWAY as error:
            # The old index goes on serving; its age tells.
            if not self._is_cut_off:
                log.warning("index_cut_off_from_catalog", error=repr(error))
            self._is_cut_off = True
        except Exception:
            # The outermost loop: one row that cannot be read must not take the public path down.
            log.exception("index_refresh_failed", version=self.version)
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
                        await self._wait_for_notice(subscription)
                        self._noticed.set()
            except VALKEY_AWAY as error:
                log.warning("index_notices_interrupted", error=repr(error))
                await asyncio.sleep(RETRY_SECONDS)

    async def _wait_for_notice(self, subscription: PubSub) -> None:
        """Wait for a notice; an answer to our own question counts as one, which costs a look too many."""
        if await subscription.get_message(timeout=self._quiet_seconds) is not None:
            return
        await subscription.ping()
        if await subscription.get_message(timeout=self._quiet_seconds) is None:
            raise TimeoutError("Nothing is heard of Valkey.")


async def _add_ids(known: IdSet, batches: AsyncIterator[list[UUID]]) -> IdSet:
    async for batch in batches:
        known = known.with_more(batch)
    return known


@contextlib.contextmanager
def _pause_gc() -> Generator[None]:
    """Keep the garbage collector off what is being compiled: each walk over it takes 60 ms.

    Compiled objects have no cycles; those that requests leave behind are collected afterwards.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
