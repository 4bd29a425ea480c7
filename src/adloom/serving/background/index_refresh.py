"""Keeps one index per process up to date with the catalog.

A notice through Valkey brings a change within milliseconds. Notices can be lost, so the refresher also checks
the catalog's version every second, and twice a second while Valkey is away. From time to time it compiles everything
again, which repairs whatever an incremental update got wrong. Of a large catalog that takes seconds: updates go on
meanwhile, and what has changed since is compiled once more for the rebuilt index.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

import msgspec
import structlog

from adloom.budgets.config.cap_counts import CapCounts
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.resource.changes import NOTICE_CHANNEL, read_marks
from adloom.runtime.loops import pause_until_next
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool
from adloom.runtime.process.tuning import pause_gc
from adloom.runtime.valkey import QUIET_SECONDS, Subscription, Valkey
from adloom.serving.auction.market import Markets
from adloom.serving.eligibility.caps import find_reached
from adloom.serving.eligibility.eligible_set import Exclusions
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index import contextual_store, store
from adloom.serving.index.compile import Interner, compile_creatives, compile_placement
from adloom.serving.index.index import EMPTY, IdTable, Index, IndexedPlacement, replace_placements
from adloom.serving.index.rows import Caps
from adloom.serving.index.site import NO_SITES, SiteIndex
from adloom.serving.index.steps import Slicer, Steps

CHECK_SECONDS = 1.0  # Up to a tenth more where polls are shared: a change without a notice is served then.
CHECK_SOON_SECONDS = 0.5  # While no notices arrive.
REBUILD_AFTER = timedelta(minutes=5)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class IndexRefresher:
    """Holds the current index; a request takes it once, so it never sees two."""

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
        self._clock = clock
        self.states = states or PlacementStates()
        self.markets = markets or Markets(self.states)
        self._swapped = swapped
        self._cap_counts = CapCounts()
        self._caps: dict[int, Caps] = {}
        self._index: Index | None = None
        self._checked_at: datetime | None = None
        self._rebuilding = asyncio.Lock()
        self._replacing = asyncio.Lock()  # Held from the version that is read to the swap, so none goes back.
        self._noticed = asyncio.Event()
        noticed = self._noticed.set
        self._notices = Subscription(
            valkey,
            NOTICE_CHANNEL,
            on_message=lambda _: noticed(),
            on_start=noticed,
            quiet_seconds=quiet_seconds,
        )
        self._is_there = asyncio.Event()
        self._is_cut_off = False

    @property
    def current(self) -> Index:
        """The index to answer from; raises UnavailableError before the first one."""
        return self.get_current()

    def get_current(self) -> Index:
        """Return the current index, in one call for those on the path of every request."""
        if self._index is None:
            raise UnavailableError("The index is not there yet.")
        return self._index

    @property
    def version(self) -> int | None:
        return None if self._index is None else self._index.version

    def measure_age(self, now: datetime) -> timedelta | None:
        """Return how long ago the index was last known to be the newest."""
        return None if self._checked_at is None else now - self._checked_at

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._notices.run(asyncio.Event()))
            group.create_task(self._rebuild_now_and_then())
            while True:
                self._noticed.clear()
                await self._try(self.refresh)
                is_told = self._notices.is_listening
                await pause_until_next(CHECK_SECONDS if is_told else CHECK_SOON_SECONDS, self._noticed)

    async def wait_until_ready(self, *, seconds_max: float) -> None:
        """Wait for the first index, with a bound: without one the answer is 503."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds_max):
                await self._is_there.wait()

    async def refresh(self) -> None:
        """Bring the index to the catalog's version, and update the caps."""
        now = self._clock.now()
        async with self._pool.acquire() as connection:
            version, _, cursors = await read_marks(connection)
            if self._index is None or (version != self._index.version and not await self._update(connection)):
                await self.rebuild()
            await self._update_caps(connection, now, cursors)
        self._checked_at = now
        self._is_there.set()

    async def rebuild(self) -> None:
        """Read and compile everything again, while updates go on."""
        async with self._rebuilding, self._pool.acquire() as connection:
            # Each walk over what is being compiled takes 60 ms; it has no cycles.
            with pause_gc():
                is_swapped = False
                while not is_swapped:
                    rebuilt = await self._read_all(connection)
                    # Updates wait only for what changes during this.
                    advanced = await self._advance(connection, rebuilt)
                    is_swapped = advanced is not None and await self._update(connection, advanced[0])
        self._cap_counts.recheck_settled()

    async def _rebuild_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(REBUILD_AFTER.total_seconds())
            await self._try(self.rebuild)

    async def _read_all(self, connection: Connection) -> Index:
        async with store.read_one_version(connection) as version:
            return replace_placements(
                EMPTY,
                version=version,
                gone=(),
                placements=await self._compile(connection, None, None),
                banner_ids=await _add_ids(IdTable(), store.iter_ids(connection, store.BANNER_IDS, None)),
                campaign_ids=await _add_ids(IdTable(), store.iter_ids(connection, store.CAMPAIGN_IDS, None)),
                sites=NO_SITES.replaced((), await contextual_store.read_sites(connection, None)),
            )

    async def _update(self, connection: Connection, rebuilt: Index | None = None) -> bool:
        """Bring the current index, or a rebuilt one, to the catalog's version, unless changes are not known."""
        async with self._replacing:
            advanced = await self._advance(connection, rebuilt or self._index or EMPTY)
            if advanced is not None:
                newer, compiled = advanced
                await self._swap(newer, compiled if rebuilt is None else newer.by_key.values())
        return advanced is not None

    async def _advance(
        self, connection: Connection, index: Index
    ) -> tuple[Index, Collection[IndexedPlacement]] | None:
        """Return an index of the catalog's version and what was compiled for it, unless changes are not known."""
        async with store.read_one_version(connection) as version:
            touched = await store.read_changed_keys(connection, since=index.version, until=version)
            if touched is None:
                return None
            compiled = await self._compile(connection, touched.placement_keys, touched.creative_keys)
            newer = replace_placements(
                msgspec.structs.replace(index, markets=(self._index or EMPTY).markets),
                version=version,
                gone=[*touched.placement_keys, *(-key for key in touched.creative_keys)],
                placements=compiled,
                banner_ids=await _add_ids(
                    index.banner_ids, store.iter_ids(connection, store.BANNER_IDS, touched.banner_keys)
                ),
                campaign_ids=await _add_ids(
                    index.campaign_ids, store.iter_ids(connection, store.CAMPAIGN_IDS, touched.campaign_keys)
                ),
                sites=await _replace_sites(connection, index.sites, touched.site_keys),
            )
            return newer, compiled

    async def _compile(
        self, connection: Connection, keys: store.Keys, campaign_keys: store.Keys
    ) -> list[IndexedPlacement]:
        """Compile placements; an unchanged one stays the same object, with its answers."""
        slicer, interner = Slicer(monotonic), Interner()
        placements: list[IndexedPlacement] = []

        async def add(compiling: Steps[IndexedPlacement]) -> None:
            placement = await slicer.run(compiling)
            before = (self._index or EMPTY).by_key.get(placement.key)
            placements.append(before if before is not None and before == placement else placement)

        async for rows in store.iter_placements(connection, keys):
            await add(compile_placement(rows, interner))
        async for creatives in contextual_store.iter_creatives(connection, campaign_keys):
            await add(compile_creatives(creatives[0].assignment.campaign_id, creatives, interner))
        return placements

    async def _swap(self, index: Index, compiled: Iterable[IndexedPlacement]) -> None:
        slicer, now = Slicer(monotonic), self._clock.now()
        before = (self._index or EMPTY).by_key
        states = [
            await slicer.run(self.states.prepare(placement, now=now))
            for placement in compiled
            if before.get(placement.key) is not placement
        ]
        top_sets = await slicer.run(self.markets.prepare(index, now=now))
        # No await from here on: a request sees all of it, or nothing.
        self.states.install(index, states)
        self.markets.install(top_sets)
        self._index = index
        self._caps = {
            key: caps for placement in index.by_key.values() for key, caps in placement.caps.items()
        }
        if self._swapped is not None:
            self._swapped(index)

    async def _update_caps(self, connection: Connection, now: datetime, cursors: Mapping[str, str]) -> None:
        counts = await self._cap_counts.read(connection, self._caps, now, projected=cursors)
        self.states.exclude(Exclusions(campaigns=find_reached(self._caps, counts)))

    async def _try(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except POSTGRES_AWAY as error:
            # The old index goes on serving; its age is a metric.
            if not self._is_cut_off:
                log.warning("index_cut_off_from_catalog", error=repr(error))
            self._is_cut_off = True
        except Exception:
            # The outermost loop: one unreadable row must not take the public path down.
            log.exception("index_refresh_failed", version=self.version)
        else:
            if self._is_cut_off:
                log.info("index_reached_catalog_again", version=self.version)
            self._is_cut_off = False


async def _replace_sites(connection: Connection, sites: SiteIndex, keys: list[int]) -> SiteIndex:
    return sites.replaced(keys, await contextual_store.read_sites(connection, keys)) if keys else sites


async def _add_ids(known: IdTable, batches: AsyncIterator[list[tuple[UUID, int | None]]]) -> IdTable:
    async for batch in batches:
        known = known.with_more(batch)
    return known
