"""Crawls, pages and approvals of sites as server-sent events.

While somebody listens, the states of the sites that are followed are read once a second, in one query: nothing is
lost with a message, and it works while Valkey is away.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Collection, Hashable, Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
import structlog

from adloom.core.ids import SiteId
from adloom.pages.live.store import (
    ApprovalEvent,
    Approvals,
    CrawlEvent,
    LiveSite,
    find_changes,
    read_approvals,
    read_changed,
    read_states,
)
from adloom.runtime.http.event_feed import EventFeed, EventListener, ListenerBounds
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool

POLL_SECONDS: Final = 1.0
# Pages of one site that are sent at a time, and as many approvals; the others follow a second later.
PAGES_MAX: Final = 100
# Pages that wait for a slow client. Beyond this it is cut off, and comes again.
BOUNDS: Final = ListenerBounds(waiting_max=1_000, heartbeat_seconds=30.0)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class PageTopic(msgspec.Struct, frozen=True, rename="camel"):
    """What a page is about."""

    id: str
    name: str
    confidence: float


class PageEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A page that is new or has changed."""

    id: UUID
    url: str
    title: str | None
    language: str | None
    categories: tuple[PageTopic, ...]
    source: str
    failure: str | None
    classified_at: datetime | None
    expires_at: datetime | None
    version: int


class RemovalEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Some pages are gone: read the list again."""

    version: int
    is_removed: bool = True


SiteEvent = PageEvent | RemovalEvent | CrawlEvent | ApprovalEvent
_encode: Final = msgspec.json.Encoder().encode


class SiteListener(EventListener):
    """Receives the events of one site."""

    def __init__(self, site_id: SiteId, *, caller: str = "", bounds: ListenerBounds = BOUNDS) -> None:
        super().__init__(caller=caller, bounds=bounds)
        self.site_id = site_id
        self.is_following = False


class SiteFeed(EventFeed[SiteListener]):
    """Looks at the sites that somebody follows."""

    def __init__(self) -> None:
        super().__init__(subject="sites")
        self._known: dict[SiteId, LiveSite] = {}
        self._approvals: dict[SiteId, Approvals] = {}

    @contextlib.asynccontextmanager
    async def run(self, pool: Pool) -> AsyncGenerator[None]:
        async with self.run_meanwhile(self._forward(pool)):
            yield

    async def _forward(self, pool: Pool) -> None:
        while True:
            await self._is_wanted.wait()
            try:
                async with pool.acquire() as connection:
                    await self.poll(connection)
            except POSTGRES_AWAY as error:
                log.warning("sites_not_followed", error=repr(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._is_unwanted.wait()

    async def poll(self, connection: Connection) -> None:
        """Read what changed on the sites that are followed, and tell it."""
        followed = {listener.site_id for listener in self._listeners if not listener.is_over}
        states = await read_states(connection, list(followed))
        self._known = {site_id: self._known.get(site_id, state) for site_id, state in states.items()}
        self._approvals = {site_id: one for site_id, one in self._approvals.items() if site_id in states}
        for site_id in followed:
            state = states.get(site_id)
            if state is not None:
                self._known[site_id] = await self._send_changes(connection, site_id, state)
        self._send_first_states(followed, states)

    async def _send_changes(self, connection: Connection, site_id: SiteId, state: LiveSite) -> LiveSite:
        """Tell what is new of a site, and return how far that is."""
        known = self._known[site_id]
        changed = known.changed
        if state.changed > known.changed:
            pages = await read_changed(connection, site_id, known.changed, count_max=PAGES_MAX)
            for page in pages:
                event = msgspec.convert(page, PageEvent, from_attributes=True)
                self._send(site_id, ("page", page.id), b"page", event)
            # Where a page was removed meanwhile, there may be less to read than the version says.
            changed = pages[-1].version if len(pages) == PAGES_MAX else max(state.changed, known.changed)
        if state.removed > known.removed:
            self._send(site_id, "removed", b"page", RemovalEvent(version=state.removed))
        if state.crawl is not None and state.crawl != known.crawl:
            self._send(site_id, "crawl", b"crawl", state.crawl)
        approvals = await self._send_approvals(connection, site_id, state)
        return LiveSite(changed, state.removed, state.crawl, approvals)

    async def _send_approvals(self, connection: Connection, site_id: SiteId, state: LiveSite) -> str:
        """Send what was decided, and return the checksum of what is sent by now."""
        told = self._approvals.get(site_id)
        if told is not None and self._known[site_id].approvals == state.approvals:
            return state.approvals
        found = await read_approvals(connection, site_id)
        if told is None:
            self._approvals[site_id] = found
            return state.approvals
        changes = find_changes(told, found)
        for name, event in changes[:PAGES_MAX]:
            self._send(site_id, ("approval", event.banner_id), name.encode(), event)
        left = {event.banner_id for _, event in changes[PAGES_MAX:]}
        kept = {banner_id: one for banner_id, one in told.items() if banner_id in left}
        self._approvals[site_id] = {key: one for key, one in found.items() if key not in left} | kept
        return self._known[site_id].approvals if left else state.approvals

    def _send(self, site_id: SiteId, key: Hashable, name: bytes, data: SiteEvent) -> None:
        event = _encode_event(name, data)
        for listener in self._listeners:
            if listener.site_id == site_id and listener.is_following:
                self._push(listener, key, event)

    def _send_first_states(self, followed: Collection[SiteId], states: Mapping[SiteId, LiveSite]) -> None:
        """Let new listeners begin, with the crawl as it is; those of sites that are gone end."""
        # Others came while the states were read.
        for listener in [one for one in self._listeners if one.site_id in followed]:
            state = states.get(listener.site_id)
            if state is None:
                listener.end()
            elif not listener.is_following and not listener.is_over:
                listener.is_following = True
                listener.begin()
                if state.crawl is not None:
                    self._push(listener, "crawl", _encode_event(b"crawl", state.crawl))


def _encode_event(name: bytes, data: SiteEvent) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name, _encode(data))
