"""The contextual routes of a delivery process, with what they see of others in memory."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from adloom.auction.creative_choice import ChoiceMethod
from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SiteId, SystemIds
from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.events.ingest.token import TokenSigner
from adloom.market.results.window import NO_RESULTS, SiteResults
from adloom.market.shortlist.table import ShortlistTable
from adloom.pages.classify.queue import PutResult
from adloom.pages.classify.request import ClassifyRequest
from adloom.pages.follow.page_table import NO_PAGES, PageEntry, PageTable
from adloom.pages.model import compute_expiry
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.auction.recorder import AuctionRecorder
from adloom.serving.contextual.api import CountPage, SlotRoutes
from adloom.serving.contextual.classify_page import ClassifyPageRoutes
from adloom.serving.contextual.fill import SlotFiller
from adloom.serving.contextual.page_lookup import PageTables
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.contextual.slot_auctions import Publish, SlotAuctions
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.sender_limits import SenderCheck
from simulation.loop import make_random
from tests.support.rows import a_site_row, a_snapshot, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SITE = SiteId(an_id(100))
BREAD = "https://example.com/bread"


class FakeQueue:
    """Keeps what is put, up to a bound; shared by the routes of several processes."""

    def __init__(self) -> None:
        self.put_requests: list[ClassifyRequest] = []
        self.room = 1_000
        self.is_away = False

    async def put_once(self, request: ClassifyRequest, *, lifetime: timedelta) -> PutResult:
        await asyncio.sleep(0)
        if self.is_away:
            raise UnavailableError("Valkey is away.")
        if len(self.put_requests) >= self.room:
            return PutResult.FULL
        pages = {
            (one.site_id, one.url)
            for one in self.put_requests
            if one.requested_at + lifetime > request.requested_at
        }
        if (request.site_id, request.url) in pages:
            return PutResult.WAITS
        self.put_requests.append(request)
        return PutResult.PUT


class FakePages:
    """Pages of sites; a site without a table could not be read."""

    def __init__(self) -> None:
        self.tables: dict[SiteId, PageTable] = {SITE: NO_PAGES}

    def find(self, site_id: SiteId) -> PageTable | None:
        return self.tables.get(site_id)

    async def wait_for(self, site_id: SiteId, *, seconds_max: float) -> PageTable | None:
        del seconds_max
        return self.tables.get(site_id)


class World:
    """The route of a delivery process, with what it sees of others."""

    def __init__(self, index: Index | None = None, **limits: int) -> None:
        self.index = index or an_index()
        self.queue, self.pages = FakeQueue(), FakePages()
        self.clock, self.recent = ManualClock(NOON), RecentTexts()
        self.rate_key: bytes | None = b"1234"
        self.routes = self.process(**limits)

    def process(self, *, per_site: int = 600, per_address: int = 60) -> ClassifyPageRoutes:
        return ClassifyPageRoutes(
            lambda: self.index,
            self.pages,
            self.queue,
            self.clock,
            recent=self.recent,
            find_rate_key=lambda _: self.rate_key,
            site_counts=MinuteCounts(per_site),
            address_counts=MinuteCounts(per_address),
        )

    async def send(
        self, url: str = BREAD, *, origin: str = "https://example.com", **fields: Any
    ) -> FastAnswer:
        return await self.routes.classify(a_request(url, origin=origin, **fields))


def an_index(**site: Any) -> Index:
    fields = {"id": SITE, "domain": "example.com", "verified_host": "example.com"} | site
    return compile_index(a_snapshot(sites=[a_site_row(**fields)]))


def a_request(url: str = BREAD, *, origin: str = "https://example.com", **fields: Any) -> FastRequest:
    headers = [(b"origin", origin.encode())] if origin else []
    body = {"url": url, "text": "Bake the loaf in a hot oven."} | fields
    return FastRequest(b"POST", b"/v1/classify-page", headers=headers, body=json.dumps(body).encode())


def known(url: str, at: datetime) -> PageTable:
    return NO_PAGES.with_changes([PageEntry(url, 1, (), at, compute_expiry(at))])


class FakeShortlists:
    """The shortlists of sites that are in memory."""

    def __init__(self, tables: dict[SiteId, ShortlistTable] | None = None) -> None:
        self.tables = tables or {}

    def find(self, site_id: SiteId) -> ShortlistTable | None:
        return self.tables.get(site_id)


def make_slot_routes(  # noqa: PLR0913 - what a test may be about
    index: Index | Callable[[], Index],
    pages: PageTables,
    *,
    shortlists: FakeShortlists | None = None,
    clock: ManualClock | None = None,
    recent: RecentTexts | None = None,
    states: PlacementStates | None = None,
    leases: LocalLeases | None = None,
    recorder: AuctionRecorder | None = None,
    publish_served: Publish | None = None,
    results: SiteResults = NO_RESULTS,
    method: ChoiceMethod = ChoiceMethod.INFORMED,
    count_page: CountPage | None = None,
    senders: SenderCheck | None = None,
) -> SlotRoutes:
    """Build the slot routes of a delivery process."""
    signer, states = TokenSigner("a secret of tests"), states or PlacementStates()
    filler = SlotFiller(
        states,
        Reserver(states, leases or LocalLeases()),
        signer,
        public_url="http://ads.test",
        chance=make_random(1, "slots"),
        read_results=lambda _site_id: results,
        method=method,
    )
    return SlotRoutes(
        (lambda: index) if isinstance(index, Index) else index,
        pages,
        clock or ManualClock(NOON),
        SystemIds(),
        recent=recent or RecentTexts(),
        shortlists=shortlists or FakeShortlists(),
        auctions=SlotAuctions(filler, recorder, publish_served=publish_served),
        seal_user=signer.seal_user,
        count_page=count_page,
        senders=senders,
    )
