"""Keeps the pages of sites in memory, for the requests of a delivery process: those of the sites that are asked for.

A request never waits for PostgreSQL: the pages of a site that is asked for the first time are read beside it. From
then on a notice through Valkey brings a change within milliseconds; notices can be lost, so the versions of all sites
in memory are also read twice a second. Beyond a bound the sites are forgotten that were not asked for the longest.
"""

import asyncio
import contextlib
from typing import Final

import msgspec
import structlog

from adloom.core.ids import SiteId
from adloom.pages.follow import store
from adloom.pages.follow.page_table import PageTable
from adloom.pages.follow.store import SiteVersions
from adloom.pages.notice import PAGE_NOTICES, read_page_notice
from adloom.runtime.loops import pass_on, pause
from adloom.runtime.postgres import POSTGRES_AWAY, Pool
from adloom.runtime.valkey import Subscription, Valkey
from adloom.serving.index.index import Index

CHECK_SECONDS: Final = 0.5
PAGES_MAX: Final = 100_000  # In memory: about 70 MB.
SITE_PAGES_MIN: Final = 100  # A site counts as at least so many, so that at most 1,000 are followed.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class PageLoader:
    """The tables of pages by site; a request takes one once, and sees one version of it."""

    def __init__(
        self, pool: Pool, valkey: Valkey, *, pages_max: int = PAGES_MAX, check_seconds: float = CHECK_SECONDS
    ) -> None:
        self._pool = pool
        self._check_seconds = check_seconds
        self._pages_max = pages_max
        self._tables: dict[SiteId, PageTable] = {}  # Least recently used first.
        self._wanted: dict[SiteId, asyncio.Event] = {}
        self._noticed = asyncio.Event()
        self._subscription = Subscription(valkey, PAGE_NOTICES, heard=self._hear, began=self._noticed.set)
        self._is_cut_off = False
        # Plain counters, read by the metrics.
        self.loads = 0
        self.updates = 0
        self.evictions = 0

    @property
    def sites(self) -> int:
        return len(self._tables)

    @property
    def pages(self) -> int:
        return sum(len(table) for table in self._tables.values())

    def find(self, site_id: SiteId) -> PageTable | None:
        """Return the pages of a site, or None where they are not in memory yet: then they are read."""
        table = self._tables.pop(site_id, None)
        if table is None:
            self._want(site_id)
        else:
            self._tables[site_id] = table
        return table

    async def wait_for(self, site_id: SiteId, *, seconds_max: float) -> PageTable | None:
        """Return the pages of a site, or None where they could not be read in time."""
        table = self.find(site_id)
        if table is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds_max):
                    await self._want(site_id).wait()
            table = self._tables.get(site_id)
        return table

    def prepare(self, index: Index) -> None:
        """Read the pages of sites with contextual placements before anybody asks, as long as there is room."""
        keys = {placement.site_key for placement in index.by_key.values() if placement.is_contextual}
        room = self._pages_max // SITE_PAGES_MIN - len(self._tables)
        for site in (index.sites.by_key.get(key) for key in keys if key is not None):
            if site is not None and site.id not in self._tables and room > 0:
                self._want(site.id)
                room -= 1

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._subscription.run(stop))
            group.create_task(pass_on(stop, self._noticed))
            while not stop.is_set():
                self._noticed.clear()
                await self._try_refresh()
                await pause(self._check_seconds, self._noticed)

    async def refresh(self) -> None:
        """Read the sites that are wanted, and what has changed in the others."""
        for site_id in list(self._wanted):
            if site_id not in self._tables:
                self._tables[site_id] = await store.read_table(self._pool, site_id)
                self.loads += 1
            self._wanted.pop(site_id).set()
            self._evict()
        versions = await store.read_versions(self._pool, list(self._tables)) if self._tables else {}
        for site_id in [one for one in self._tables if one not in versions]:
            del self._tables[site_id]  # The site is gone.
        await self._update(versions)

    async def _update(self, versions: dict[SiteId, SiteVersions]) -> None:
        for site_id, version in versions.items():
            table = self._tables.get(site_id)
            if table is None or version.newest <= table.version:
                continue
            changes = await store.read_changes(self._pool, site_id, table.version)
            if changes is None:
                newer = await store.read_table(self._pool, site_id)
            else:
                newer = table.with_changes(changes)
            if site_id in self._tables:
                self._tables[site_id] = newer  # In its place: a change is no use.
                self.updates += 1
        self._evict()

    def _evict(self) -> None:
        counts = [max(SITE_PAGES_MIN, len(table)) for table in self._tables.values()]
        beyond = sum(counts) - self._pages_max
        for site_id, count in zip(list(self._tables)[:-1], counts[:-1], strict=True):
            if beyond <= 0:
                break
            del self._tables[site_id]
            self.evictions += 1
            beyond -= count

    def _want(self, site_id: SiteId) -> asyncio.Event:
        self._noticed.set()
        return self._wanted.setdefault(site_id, asyncio.Event())

    def _hear(self, message: bytes) -> None:
        try:
            notice = read_page_notice(message)
        except msgspec.DecodeError:
            return  # The versions are read anyway.
        table = self._tables.get(notice.site_id)
        if table is not None and notice.version > table.version:
            self._noticed.set()

    async def _try_refresh(self) -> None:
        try:
            await self.refresh()
        except POSTGRES_AWAY as error:
            # What is in memory goes on being used.
            if not self._is_cut_off:
                log.warning("pages_cut_off_from_database", error=repr(error))
            self._is_cut_off = True
            self._give_up()
            await asyncio.sleep(CHECK_SECONDS)
        except Exception:
            # The outermost loop: one unreadable row must not keep all other pages from being known.
            log.exception("page_refresh_failed")
            self._give_up()
            await asyncio.sleep(CHECK_SECONDS)
        else:
            self._is_cut_off = False

    def _give_up(self) -> None:
        """Let those go on that wait for a site; it is wanted again when it is asked for again."""
        for waited in self._wanted.values():
            waited.set()
        self._wanted.clear()
