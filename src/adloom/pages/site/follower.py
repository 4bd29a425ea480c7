"""Tells site actors what has changed: pages by their versions, and their sites by the catalog's.

A page notice through Valkey, or a change of the catalog, is followed within milliseconds; both are also looked for every
second. The last version that was sent is stored in Valkey, after it is durable: when a worker is killed, the next goes
on from there; without it all pages are sent again, which changes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, cast
from uuid import UUID

import msgspec

from adloom.core.errors import UnavailableError
from adloom.core.ids import SiteId
from adloom.pages.follow import store as pages_store
from adloom.pages.follow.page_table import PageMark
from adloom.pages.notice import PAGE_NOTICES
from adloom.pages.site.messages import (
    ChangePages,
    CheckSite,
    ConfigureSite,
    ReadPages,
    SiteConfig,
    SlotConfig,
    make_site_address,
)
from adloom.pages.site.step import SiteKind
from adloom.resource.changes import NOTICE_CHANNEL, read_marks_together, read_version
from adloom.runtime.actors.actor import Address, UnreadableActorStateError
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import Pool, raise_if_away, read_snapshot
from adloom.runtime.valkey import ANYTHING_AWAY, Subscription, Valkey

SITES: Final = """
    SELECT public_id, domain, verified_host IS NOT NULL AS is_verified, is_suspended
      FROM sites WHERE public_id = ANY ($1::uuid[])
"""
SLOTS: Final = """
    SELECT site.public_id AS site_id, slug, recommended_width AS width, recommended_height AS height
      FROM placements AS placement
      JOIN sites AS site ON site.id = placement.site_id
     WHERE placement.delivery = 'contextual' AND placement.is_active AND site.public_id = ANY ($1::uuid[])
     ORDER BY slug
"""


async def read_sites(pool: Pool, site_ids: Sequence[SiteId]) -> dict[SiteId, ConfigureSite]:
    """Read sites at one version of the catalog; of one that is gone, that it is."""
    with raise_if_away("Sites cannot be read"):
        async with read_snapshot(pool) as connection:
            version = await read_version(connection)
            rows = await connection.fetch(SITES, site_ids)
            slots: dict[SiteId, list[SlotConfig]] = {}
            for site_id, *slot in await connection.fetch(SLOTS, site_ids):
                slots.setdefault(SiteId(site_id), []).append(SlotConfig(*slot))
    found = {
        SiteId(site_id): SiteConfig(
            domain=domain,
            is_verified=is_verified,
            is_suspended=is_suspended,
            slots=tuple(slots.get(SiteId(site_id), ())),
        )
        for site_id, domain, is_verified, is_suspended in rows
    }
    return {site_id: ConfigureSite(version, found.get(site_id)) for site_id in site_ids}


CHANGES_MAX: Final = 200  # In one message; beyond, the actor reads all of its pages.
STATES: Final = "SELECT state, format FROM brain_states WHERE kind = $1"
TOLD_KEY: Final = "adloom:sites:told"
NEWS_CHANNEL: Final = "adloom:sites:news:{site_id}"
POLL_SECONDS: Final = 1.0
NEWS_AT_ONCE: Final = 500
ANSWER_SECONDS_MAX: Final = 10.0
FAILED_MAX: Final = 3  # Sites in one poll: then it is the host that does not answer.

_encode_news: Final = msgspec.msgpack.Encoder().encode


class SiteHost(Protocol):
    """Runs the site actors, here or in other processes."""

    async def ask(self, address: Address, message: msgspec.Struct, *, seconds_max: float) -> Any:  # noqa: ANN401 - each kind's own
        """Send a message and wait for the reply; raises TimeoutError, or UnavailableError if there will be none."""
        ...


class SiteReader:
    """Reads the site and all its pages before an actor's first message."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.configured: dict[SiteId, ConfigureSite] = {}  # What actors were last told.

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        site_ids = [SiteId(UUID(address.key)) for address in addresses]
        configured = await read_sites(self._pool, site_ids)
        self.configured |= configured
        found: dict[Address, Sequence[msgspec.Struct]] = {}
        for address, site_id in zip(addresses, site_ids, strict=True):
            with raise_if_away("Pages cannot be read"):
                table = await pages_store.read_table(self._pool, site_id)
            found[address] = [configured[site_id], ReadPages(table)]
        return found


class NewsBroadcaster:
    """Publishes what site actors tell, in groups, on a channel of each site."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def publish(self, messages: Sequence[tuple[str, msgspec.Struct]]) -> None:
        by_site: dict[str, list[msgspec.Struct]] = {}
        for site_id, news in messages:
            by_site.setdefault(site_id, []).append(news)
        for site_id, news in by_site.items():
            for first in range(0, len(news), NEWS_AT_ONCE):
                message = _encode_news(news[first : first + NEWS_AT_ONCE])
                await self._valkey.publish(NEWS_CHANNEL.format(site_id=site_id), message)


class SiteFollower:
    """Follows pages and catalog for the site actors of one host."""

    def __init__(self, pool: Pool, valkey: Valkey, reader: SiteReader, host: SiteHost) -> None:
        self._pool = pool
        self._valkey = valkey
        self._reader = reader
        self._host = host
        self._loop = PollLoop(self.poll, every_seconds=POLL_SECONDS, away=ANYTHING_AWAY, name="sites")
        noticed = self._loop.noticed.set
        self._subscriptions = [
            Subscription(valkey, channel, on_message=lambda _: noticed(), on_start=noticed)
            for channel in (PAGE_NOTICES, NOTICE_CHANNEL)
        ]
        self._told: dict[SiteId, int] | None = None
        self._mark = PageMark()
        self._catalog_version = -1
        self._failed: set[SiteId] = set()  # Sites that could not be told the last time.
        # A plain counter, read by a collector.
        self.changes = 0

    async def run(self, stop: asyncio.Event) -> None:
        self._told = None
        self._mark = PageMark()
        self._failed.clear()
        self._reader.configured.clear()
        await self._loop.run(stop, *self._subscriptions)

    async def poll(self) -> None:
        """Tell the actors concerned what has changed since the last poll."""
        at = asyncio.get_running_loop().time()
        with raise_if_away("The catalog cannot be read"):
            marks = await read_marks_together(self._pool)
        failed = await self._follow_catalog(marks.catalog)
        if self._told is None:
            self._told = await self._read_remembered()
        if self._mark.is_due(marks.pages, at=at):
            failed = await self._follow_pages(self._told) or failed
            if failed is None:
                self._mark.note_read(at=at)
        if failed is not None:
            raise failed

    async def _follow_pages(self, told: dict[SiteId, int]) -> UnavailableError | None:
        with raise_if_away("Pages cannot be read"):
            versions = await pages_store.read_versions(self._pool)

        async def tell(site_id: SiteId) -> None:
            newest = versions[site_id].newest
            await self._send_pages(site_id, told.get(site_id))
            told[site_id] = newest
            await cast("Any", self._valkey).hset(TOLD_KEY, str(site_id), newest)

        changed = [one for one, version in versions.items() if version.newest > told.get(one, 0)]
        failed = await self._tell_each(changed, tell)
        for site_id in [one for one in told if one not in versions]:
            del told[site_id]
            await cast("Any", self._valkey).hdel(TOLD_KEY, str(site_id))
        return failed

    async def _tell_each(
        self, site_ids: Iterable[SiteId], tell: Callable[[SiteId], Awaitable[None]]
    ) -> UnavailableError | None:
        """Tell sites; return why one could not be told. Those that failed come last: no other waits for them."""
        failed: list[UnavailableError] = []
        for site_id in sorted(site_ids, key=self._failed.__contains__):
            try:
                await tell(site_id)
            except UnavailableError as error:
                self._failed.add(site_id)
                failed.append(error)
                if len(failed) >= FAILED_MAX:
                    break
            else:
                self._failed.discard(site_id)
        return failed[0] if failed else None

    async def _send_pages(self, site_id: SiteId, since: int | None) -> None:
        """Tell an actor what changed, and wait until that is durable. One that becomes active reads all pages first."""
        message: msgspec.Struct = CheckSite()
        if since is not None and site_id in self._reader.configured:
            with raise_if_away("Pages cannot be read"):
                changes = await pages_store.read_changes(self._pool, site_id, since)
                if changes is None:
                    message = ReadPages(await pages_store.read_table(self._pool, site_id))
                else:
                    message = ChangePages(tuple(changes))
        await self._ask(site_id, message)

    async def _ask(self, site_id: SiteId, message: msgspec.Struct) -> None:
        """Send a message and wait: the answer comes when what was told is durable."""
        try:
            await self._host.ask(make_site_address(site_id), message, seconds_max=ANSWER_SECONDS_MAX)
        except TimeoutError as error:
            raise UnavailableError("The site actor does not answer.") from error
        self.changes += 1

    async def _follow_catalog(self, version: int) -> UnavailableError | None:
        """Tell sites that were in memory lately where the catalog says something else about them."""
        if version == self._catalog_version:
            return None
        before = dict(self._reader.configured)
        now = await read_sites(self._pool, list(before))

        async def tell(site_id: SiteId) -> None:
            await self._ask(site_id, now[site_id])
            self._reader.configured[site_id] = now[site_id]

        failed = await self._tell_each((one for one in now if now[one].config != before[one].config), tell)
        for site_id in [one for one, known in self._reader.configured.items() if known.config is None]:
            del self._reader.configured[site_id]
        if failed is None:
            self._catalog_version = version
        return failed

    async def _read_remembered(self) -> dict[SiteId, int]:
        known = cast("dict[bytes, bytes]", await cast("Any", self._valkey).hgetall(TOLD_KEY))
        return {SiteId(UUID(site_id.decode())): int(version) for site_id, version in known.items()}


class SharedSiteFollower(SiteFollower):
    """Follows for the site actors of all workers.

    It knows neither which of them are in memory nor what they have read. So changes of pages are sent to all, and an
    actor that has to read everything is loaded again. What a site was last told about itself is in its stored state.
    """

    def __init__(self, pool: Pool, valkey: Valkey, sender: NatsSender) -> None:
        # The reader only remembers here what sites were told.
        super().__init__(pool, valkey, SiteReader(pool), sender)
        self._sender = sender

    async def _send_pages(self, site_id: SiteId, since: int | None) -> None:
        changes = None
        if since is not None:
            with raise_if_away("Pages cannot be read"):
                changes = await pages_store.read_changes(self._pool, site_id, since)
        if changes is None or len(changes) > CHANGES_MAX:
            await self._ask_fresh(site_id)
        else:
            await self._ask(site_id, ChangePages(tuple(changes)))

    async def _ask_fresh(self, site_id: SiteId) -> None:
        try:
            await self._sender.ask(
                make_site_address(site_id), CheckSite(), seconds_max=ANSWER_SECONDS_MAX, is_fresh=True
            )
        except TimeoutError as error:
            raise UnavailableError("The site actor does not answer.") from error
        self.changes += 1

    async def _follow_catalog(self, version: int) -> UnavailableError | None:
        if version != self._catalog_version:
            self._reader.configured = await self._load_configured()
        return await super()._follow_catalog(version)

    async def _load_configured(self) -> dict[SiteId, ConfigureSite]:
        """Load what each site was last told about itself."""
        kind = SiteKind()
        with raise_if_away("Sites cannot be read"):
            rows = await self._pool.fetch(STATES, kind.name)
        configured: dict[SiteId, ConfigureSite] = {}
        for row in rows:
            with suppress(UnreadableActorStateError):  # Its own actor says so; others wait for none of it.
                state = kind.decode(row["state"], format_number=row["format"])
                configured[state.site_id] = ConfigureSite(state.config_version, state.config)
        return configured
