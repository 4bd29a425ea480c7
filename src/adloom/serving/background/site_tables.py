"""Keeps tables of sites in memory, for the requests of a delivery process: pages, shortlists; of sites that are asked for.

A request never waits for PostgreSQL: the table of a site that is asked for the first time is read beside it. From
then on a notice through Valkey brings a change within milliseconds, and only the site that it names is read; notices
can be lost, so the versions of all sites in memory are also read every two seconds. Beyond a bound the sites are
forgotten that were not asked for the longest.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
import structlog

from adloom.core.ids import SiteId
from adloom.market.shortlist import store as shortlist_store
from adloom.market.shortlist.model import SHORTLIST_NOTICES, read_shortlist_notice
from adloom.market.shortlist.table import NO_SHORTLISTS, ShortlistTable
from adloom.pages.follow import store as page_store
from adloom.pages.follow.page_table import PageTable
from adloom.pages.notice import PAGE_NOTICES, read_page_notice
from adloom.runtime.loops import compute_wait, pass_on, pause, pause_until_next
from adloom.runtime.postgres import POSTGRES_AWAY, Pool
from adloom.runtime.valkey import Subscription, Valkey
from adloom.serving.index.index import Index

CHECK_SECONDS: Final = 2.0  # Of all sites; a notice does not wait for it.
CHECK_EARLY_SECONDS: Final = 0.01  # Timers are not exact.
RETRY_SECONDS: Final = 0.5
PAGES_MAX: Final = 100_000  # In memory: about 70 MB.
SITE_PAGES_MIN: Final = 100  # A site counts as at least so many, so that at most 1,000 are followed.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class SiteTable(Protocol):
    """Something of one site at a version: how many pages it is about."""

    @property
    def version(self) -> int: ...

    def __len__(self) -> int: ...


TableT = TypeVar("TableT", bound=SiteTable)


class TableSource(Protocol[TableT]):
    """Where the tables of sites come from, and the channel on which it is said that one has changed."""

    @property
    def channel(self) -> str: ...

    def read_notice(self, message: bytes) -> tuple[SiteId, int]:
        """Return which site has changed, and its version by now; raises DecodeError."""
        ...

    async def read(self, site_id: SiteId) -> TableT: ...

    async def read_versions(self, site_ids: Sequence[SiteId]) -> dict[SiteId, int]:
        """Return the versions of sites; those that are gone are left out."""
        ...

    async def read_newer(self, site_id: SiteId, table: TableT) -> TableT:
        """Return a table with all that has changed since."""
        ...


class TableLoader(Generic[TableT]):
    """The tables of one kind by site; a request takes one once, and sees one version of it."""

    def __init__(
        self,
        source: TableSource[TableT],
        valkey: Valkey,
        *,
        pages_max: int = PAGES_MAX,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        self._source = source
        self._check_seconds = check_seconds
        self._pages_max = pages_max
        self._tables: dict[SiteId, TableT] = {}  # Least recently used first.
        # Found since the last poll, by the numbers of ids: looking for an id itself calls Python, twice.
        self._found: dict[int, TableT] = {}
        self._wanted: dict[SiteId, asyncio.Event] = {}
        self._behind: dict[SiteId, int] = {}  # The versions that notices named.
        self._noticed = asyncio.Event()
        self._check_now = False
        self._subscription = Subscription(
            valkey, source.channel, on_message=self._receive_notice, on_start=self._check
        )
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

    def find(self, site_id: SiteId) -> TableT | None:
        """Return the pages of a site, or None where they are not in memory yet: then they are read."""
        found = self._found.get(site_id.int)
        return self._find(site_id) if found is None else found

    def _find(self, site_id: SiteId) -> TableT | None:
        table = self._tables.pop(site_id, None)
        if table is None:
            self._want(site_id)
        else:
            self._tables[site_id] = self._found[site_id.int] = table
        return table

    async def wait_for(self, site_id: SiteId, *, seconds_max: float) -> TableT | None:
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
            check_at = 0.0
            while not stop.is_set():
                self._noticed.clear()
                now = asyncio.get_running_loop().time()
                is_check, self._check_now = now > check_at - CHECK_EARLY_SECONDS or self._check_now, False
                check_at = now + compute_wait(self._check_seconds) if is_check else check_at
                await self._try(self.refresh if is_check else self.catch_up)
                seconds = check_at - asyncio.get_running_loop().time()
                if seconds < self._check_seconds / 10:  # The next that we could wait for is the one after it.
                    await pause(max(0.0, seconds), self._noticed)
                else:
                    await pause_until_next(self._check_seconds, self._noticed)

    async def catch_up(self) -> None:
        """Read the sites that are wanted, and those that a notice named."""
        self._found.clear()
        for site_id in list(self._wanted):
            if site_id not in self._tables:
                self._tables[site_id] = await self._source.read(site_id)
                self.loads += 1
            self._wanted.pop(site_id).set()
            self._evict()
        behind, self._behind = self._behind, {}
        await self._update(behind)

    async def refresh(self) -> None:
        """Read the sites that are wanted, and what has changed in the others."""
        await self.catch_up()
        versions = await self._source.read_versions(list(self._tables)) if self._tables else {}
        for site_id in [one for one in self._tables if one not in versions]:
            del self._tables[site_id]  # The site is gone.
        self._found.clear()
        await self._update(versions)

    async def _update(self, versions: dict[SiteId, int]) -> None:
        for site_id, version in versions.items():
            table = self._tables.get(site_id)
            if table is None or version <= table.version:
                continue
            newer = await self._source.read_newer(site_id, table)
            if site_id in self._tables:
                self._tables[site_id] = newer  # In its place: a change is no use.
                self._found.pop(site_id.int, None)
                self.updates += 1
        self._evict()

    def _evict(self) -> None:
        counts = [max(SITE_PAGES_MIN, len(table)) for table in self._tables.values()]
        beyond = sum(counts) - self._pages_max
        for site_id, count in zip(list(self._tables)[:-1], counts[:-1], strict=True):
            if beyond <= 0:
                break
            del self._tables[site_id]
            self._found.pop(site_id.int, None)
            self.evictions += 1
            beyond -= count

    def _want(self, site_id: SiteId) -> asyncio.Event:
        self._noticed.set()
        return self._wanted.setdefault(site_id, asyncio.Event())

    def _check(self) -> None:
        """Look at all sites now: notices may have been lost before the subscription began."""
        self._check_now = True
        self._noticed.set()

    def _receive_notice(self, message: bytes) -> None:
        try:
            site_id, version = self._source.read_notice(message)
        except msgspec.DecodeError:
            return  # The versions are read anyway.
        table = self._tables.get(site_id)
        if table is not None and version > table.version:
            self._behind[site_id] = max(version, self._behind.get(site_id, 0))
            self._noticed.set()

    async def _try(self, read: Callable[[], Awaitable[None]]) -> None:
        try:
            await read()
        except POSTGRES_AWAY as error:
            # What is in memory goes on being used.
            if not self._is_cut_off:
                log.warning("site_tables_cut_off", channel=self._source.channel, error=repr(error))
            self._is_cut_off = True
            self._give_up()
            await asyncio.sleep(RETRY_SECONDS)
        except Exception:
            # The outermost loop: one unreadable row must not keep all other pages from being known.
            log.exception("site_tables_failed", channel=self._source.channel)
            self._give_up()
            await asyncio.sleep(RETRY_SECONDS)
        else:
            self._is_cut_off = False

    def _give_up(self) -> None:
        """Let those go on that wait for a site; it is wanted again when it is asked for again."""
        for waited in self._wanted.values():
            waited.set()
        self._wanted.clear()


class PageTableSource:
    """The pages of sites."""

    channel = PAGE_NOTICES

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def read_notice(self, message: bytes) -> tuple[SiteId, int]:
        notice = read_page_notice(message)
        return notice.site_id, notice.version

    async def read(self, site_id: SiteId) -> PageTable:
        return await page_store.read_table(self._pool, site_id)

    async def read_versions(self, site_ids: Sequence[SiteId]) -> dict[SiteId, int]:
        versions = await page_store.read_versions(self._pool, site_ids)
        return {site_id: version.newest for site_id, version in versions.items()}

    async def read_newer(self, site_id: SiteId, table: PageTable) -> PageTable:
        changes = await page_store.read_changes(self._pool, site_id, table.version)
        return await self.read(site_id) if changes is None else table.with_changes(changes)


class ShortlistTableSource:
    """The shortlists of sites."""

    channel = SHORTLIST_NOTICES

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def read_notice(self, message: bytes) -> tuple[SiteId, int]:
        notice = read_shortlist_notice(message)
        return notice.site_id, notice.version

    async def read(self, site_id: SiteId) -> ShortlistTable:
        return await shortlist_store.read_changes(self._pool, site_id, NO_SHORTLISTS)

    async def read_versions(self, site_ids: Sequence[SiteId]) -> dict[SiteId, int]:
        return await shortlist_store.read_versions(self._pool, site_ids)

    async def read_newer(self, site_id: SiteId, table: ShortlistTable) -> ShortlistTable:
        return await shortlist_store.read_changes(self._pool, site_id, table)


class PageLoader(TableLoader[PageTable]):
    """The pages of sites."""

    def __init__(self, pool: Pool, valkey: Valkey, **options: Any) -> None:  # noqa: ANN401 - those of any table
        super().__init__(PageTableSource(pool), valkey, **options)


class ShortlistLoader(TableLoader[ShortlistTable]):
    """The shortlists of sites."""

    def __init__(self, pool: Pool, valkey: Valkey, **options: Any) -> None:  # noqa: ANN401 - likewise
        super().__init__(ShortlistTableSource(pool), valkey, **options)
