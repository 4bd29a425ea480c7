"""Tells the market what has changed: campaigns, sites and pages.

A notice through Valkey brings a change within milliseconds; looking every two seconds finds lost ones. Once a minute all
campaigns are told, so that whatever was lost on the way is made good. For the same reason pages are told twice.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from adloom.budgets.campaign.demand import DIRECTORY, CampaignDemand, CampaignGone, CampaignReady
from adloom.budgets.messages import (
    AdvertiserExhausted,
    AdvertiserRestored,
    CampaignExhausted,
    CampaignRestored,
    CheckClock,
)
from adloom.budgets.transport.wire import SPEND_CHANNEL, decode_updates
from adloom.core.errors import UnavailableError
from adloom.core.ids import AdvertiserId, CampaignId, SiteId
from adloom.market.auctioneer.state import PageForSale, PagesClassified
from adloom.market.demand_store import MarketChanges, load_all, load_changes, load_named
from adloom.market.messages import AllDemand
from adloom.market.routing import make_auctioneer_address
from adloom.market.shortlist.store import remove_expired
from adloom.market.site_store import load_sites, sell_page
from adloom.pages.follow.page_table import PageEntry, PageMark
from adloom.pages.follow.store import read_changes, read_table, read_versions
from adloom.pages.notice import PAGE_NOTICES
from adloom.resource.changes import NOTICE_CHANNEL, read_marks_together
from adloom.runtime.actors.mailboxes import Host
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import Connection, Pool, raise_if_away
from adloom.runtime.valkey import ANYTHING_AWAY, Subscription, Valkey

POLL_SECONDS: Final = 2.0
ALL_SECONDS: Final = 60.0
PAGES_AGAIN_SECONDS: Final = 60.0
CLEAN_SECONDS: Final = 600.0
PART_MAX: Final = 500  # Told at once: a mailbox takes a thousand.


class MarketFollower:
    """Follows catalog and pages for the actors of the market."""

    def __init__(self, pool: Pool, valkey: Valkey, host: Host) -> None:
        self._pool = pool
        self._host = host
        self._loop = PollLoop(
            self._try_to_poll, every_seconds=POLL_SECONDS, away=ANYTHING_AWAY, name="market"
        )
        noticed = self._loop.noticed.set
        self._subscriptions = [
            *(
                Subscription(valkey, channel, on_message=lambda _: noticed(), on_start=noticed)
                for channel in (NOTICE_CHANNEL, PAGE_NOTICES)
            ),
            Subscription(valkey, SPEND_CHANNEL, on_message=self._receive_spend, on_start=noticed),
        ]
        self._spending: set[CampaignId] = set()  # Whose budgets ran out or were restored.
        self._paying: set[AdvertiserId] = set()  # Likewise.
        self._version: int | None = None
        self._all_at = 0.0
        self._clean_at = 0.0
        self._mark = PageMark()
        self._pages: dict[SiteId, int] = {}  # By site, the version of its pages that the auctioneer has got.
        self._pages_again_at = 0.0
        # The same as of the last two times that pages were sent again, the older first.
        self._pages_before: tuple[dict[SiteId, int], dict[SiteId, int]] = {}, {}
        self._awake: set[SiteId] = set()  # Sites whose auctioneers got a message.
        # A plain counter, read by a collector.
        self.sent = 0

    async def run(self, stop: asyncio.Event) -> None:
        self._version = None
        self._forget_pages()
        await self._loop.run(stop, *self._subscriptions)

    def _forget_pages(self) -> None:
        self._pages.clear()
        self._pages_before = {}, {}
        self._awake.clear()
        self._mark = PageMark()

    async def _try_to_poll(self) -> None:
        with raise_if_away("The catalog cannot be read"):
            await self.poll()

    async def poll(self) -> None:
        """Tell what has changed since the last poll."""
        now = asyncio.get_running_loop().time()
        marks = await read_marks_together(self._pool)
        has_spent = bool(self._spending or self._paying)
        if has_spent or marks.catalog != self._version or self._is_all_due(now):
            await self._follow_catalog(now)
        if self._mark.is_due(marks.pages, at=now):
            await self._send_pages()
            await self._send_pages_again(now)
            self._mark.note_read(at=now)
        if now >= self._clean_at:
            await remove_expired(self._pool)
            self._clean_at = now + CLEAN_SECONDS

    def _is_all_due(self, now: float) -> bool:
        return now >= self._all_at

    async def _follow_catalog(self, now: float) -> None:
        async with self._pool.acquire() as connection:
            changes = await self._read_changes(connection, now)
            configured = await load_sites(connection, changes.sites) if changes.sites else {}
            if self._spending or self._paying:
                named = await self._load_named(connection)
                changes = msgspec.structs.replace(changes, bidding=[*changes.bidding, *named])
        for site_id, message in configured.items():
            self._send_to_site(site_id, message)
        await self._send_demand(changes)
        self._version = changes.version

    async def _load_named(self, connection: Connection) -> list[CampaignDemand]:
        """Read what campaigns bid whose budgets ran out or were restored; what comes meanwhile is for the next poll."""
        spending, paying = self._spending, self._paying
        self._spending, self._paying = set(), set()
        try:
            return await load_named(connection, spending, paying)
        except Exception:
            self._spending |= spending
            self._paying |= paying
            raise

    async def _read_changes(self, connection: Connection, now: float) -> MarketChanges:
        if self._version is not None and not self._is_all_due(now):
            return await load_changes(connection, since=self._version)
        changes = await load_all(connection)
        self._all_at = now + ALL_SECONDS
        if self._version is None or changes.version == self._version:
            return changes
        # Sites are told by their own changes; pages by theirs.
        sites = (await load_changes(connection, since=self._version)).sites
        return msgspec.structs.replace(changes, sites=sites)

    def _receive_spend(self, message: bytes) -> None:
        """Note budgets that ran out or were restored; what is lost is found within a minute."""
        if b"_exhausted" not in message and b"_restored" not in message:
            return  # Nearly all say only how much was spent.
        for news in decode_updates(message):
            match news:
                case CampaignExhausted() | CampaignRestored():
                    self._spending.add(news.campaign_id)
                case AdvertiserExhausted() | AdvertiserRestored():
                    self._paying.add(news.advertiser_id)
                case _:
                    continue
            self._loop.noticed.set()

    async def _send_demand(self, changes: MarketChanges) -> None:
        if changes.is_everything:
            self._send_to_directory(AllDemand(changes.version, tuple(changes.bidding)))
            return
        messages = [
            *(CampaignReady(demand) for demand in changes.bidding),
            *(CampaignGone(campaign_id, changes.version) for campaign_id in changes.gone),
        ]
        for start in range(0, len(messages), PART_MAX):
            for message in messages[start : start + PART_MAX]:
                self._send_to_directory(message)
            await asyncio.sleep(0)

    async def _send_pages(self) -> None:
        versions = await read_versions(self._pool)
        for site_id, version in versions.items():
            known = self._pages.get(site_id)
            if known is None and site_id not in self._awake:
                self._wake(site_id)
            elif known is None or version.newest > known:
                changed = None if known is None else await read_changes(self._pool, site_id, known)
                await self._send_changed_pages(site_id, changed)
            self._pages[site_id] = version.newest

    async def _send_pages_again(self, now: float) -> None:
        """Send what was sent one to two minutes ago once more: the message may have been lost."""
        if now < self._pages_again_at:
            return
        self._pages_again_at = now + PAGES_AGAIN_SECONDS
        before, after = self._pages_before
        self._pages_before = after, dict(self._pages)
        for site_id, version in after.items():
            known = before.get(site_id)
            if known is None:
                self._wake(site_id)
            elif known < version:
                changed = await read_changes(self._pool, site_id, known)
                for start in range(0, 1 if changed is None else len(changed), PART_MAX):
                    part = None if changed is None else changed[start : start + PART_MAX]
                    await self._send_changed_pages(site_id, part)

    async def _send_changed_pages(self, site_id: SiteId, changed: Sequence[PageEntry] | None) -> None:
        """Tell an auctioneer which pages have changed; None if that is not known."""
        if changed is None:
            table = await read_table(self._pool, site_id)
            message = PagesClassified(_sell(table.entries.values()), is_all=True)
        else:
            gone = tuple(entry.url for entry in changed if entry.expires_at is None)
            message = PagesClassified(_sell(changed), gone=gone)
        self._send_to_site(site_id, message)

    def _wake(self, site_id: SiteId) -> None:
        self._send_to_site(site_id, CheckClock())  # It reads all pages itself when it wakes.

    def _send_to_site(self, site_id: SiteId, message: msgspec.Struct) -> None:
        if not self._host.tell(make_auctioneer_address(site_id), message):
            raise UnavailableError("There is no room for what has changed.")
        self._awake.add(site_id)
        self.sent += 1

    def _send_to_directory(self, message: AllDemand | CampaignReady | CampaignGone) -> None:
        if not self._host.tell(DIRECTORY, message):
            raise UnavailableError("There is no room for what has changed.")
        self.sent += 1


def _sell(entries: Iterable[PageEntry]) -> tuple[PageForSale, ...]:
    sold = (sell_page(entry) for entry in entries)
    return tuple(page for page in sold if page is not None)
