"""Fills the contextual slots of a simulated market: the real choice, price and reservation, without HTTP."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from adloom.core.ids import SiteId
from adloom.core.random import Chance
from adloom.events.ingest.token import TokenSigner
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.page_auctions import FOREVER, PageAuctions
from adloom.market.results.window import NO_RESULTS, ResultRow, ResultWindows, SiteResults, build_results
from adloom.pages.follow.page_table import PageEntry
from adloom.pages.model import PageCategory
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.http.fast.known_heads import Head
from adloom.serving.contextual.fill import FilledSlot, SlotFiller
from adloom.serving.contextual.prepare import PreparedSlots
from adloom.serving.contextual.visit import ParseContext, SlotVisit
from adloom.serving.eligibility.frequency_lookup import NO_BANNERS, BannerKeys
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.index.site import IndexedSite
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.overrides import Overrides
from adloom.taxonomy.topics import FILLER

# Tokens of a simulation are never read.
SIGNER: Final = TokenSigner("simulated")
NOBODY: Final = bytes(16)
MINUTE: Final = 60

Counted = tuple[int, int]  # Impressions and clicks.


class PageSlot(msgspec.Struct, frozen=True, gc=False):
    """A slot of a page, as all requests of a cell share it."""

    placement: IndexedPlacement
    site: IndexedSite
    entry: PageEntry


class SimulatedSlots:
    """Fills slots from shortlists and the results of creatives in the last hour."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        market: SimulatedMarket,
        index: Index,
        states: PlacementStates,
        reserver: Reserver,
        *,
        parse_context: ParseContext,
        chance: Chance,
    ) -> None:
        self._index = index
        self._parse = parse_context
        self._auctions = PageAuctions(market, chance)
        self._prepared = PreparedSlots()
        self._windows = ResultWindows()
        self._results: dict[SiteId, SiteResults] = {}
        self._counted: dict[tuple[SiteId, int, str, int], Counted] = {}
        self._rows = 0
        self._filler = SlotFiller(
            states,
            reserver,
            SIGNER,
            public_url="",
            chance=chance,
            read_results=lambda site_id: self._results.get(site_id, NO_RESULTS),
        )
        self._http = FastRequest(b"GET", b"/", head=Head([], {}, b""))
        self._entries = {
            one.url: PageEntry(
                one.url,
                1,
                tuple(PageCategory(*category) for category in one.categories),
                market.starts_at,
                FOREVER,
            )
            for one in market.pages
        }
        self.receive = self._auctions.receive
        self.lower_bids = self._auctions.lower_bids

    def find(self, slug: bytes, url: str) -> PageSlot | None:
        """Return a slot of a page, if there is one."""
        found, entry = self._index.find_slot(slug), self._entries.get(url)
        return None if found is None or entry is None else PageSlot(*found, entry)

    def fill(
        self,
        asked: PageSlot,
        overrides: Overrides,
        now: datetime,
        second: int,
        seen: BannerKeys = NO_BANNERS,
    ) -> FilledSlot | None:
        """Fill a slot for a visitor."""
        table = self._auctions.tables.get(asked.site.id)
        listed = None if table is None else table.pages.get(asked.entry.url)
        prepared = self._prepared.get(self._index, asked.placement, asked.site, asked.entry, listed)
        visit = SlotVisit(self._http, overrides, self._parse, now, second, NOBODY, b"", b"", seen=seen)
        filled = self._filler.fill(prepared, visit)
        return filled if isinstance(filled, FilledSlot) else None

    def find_capped(self, asked: PageSlot, now: datetime) -> Sequence[IndexedPlacement]:
        """Return the creatives with a frequency cap that could fill a slot."""
        table = self._auctions.tables.get(asked.site.id)
        slug = asked.placement.slug.decode()
        candidates = () if table is None else table.find(asked.entry.url, slug, now)
        return self._filler.find_capped(self._index, candidates)

    def count(self, filled: FilledSlot, site_id: SiteId, second: int, *, is_clicked: bool) -> None:
        """Count an impression of a creative, and its click."""
        winner = filled.winner
        topic = winner.candidate.category or FILLER
        key = site_id, winner.creative.banner_key, topic, second // MINUTE
        impressions, clicks = self._counted.get(key, (0, 0))
        self._counted[key] = impressions + 1, clicks + is_clicked

    def advance(self, capped: Collection[int], now: datetime) -> None:
        """Let auctions and choices know what was counted, and auction pages that are due."""
        rows: list[ResultRow] = []
        for (site_id, banner_key, topic, minute), counted in self._counted.items():
            self._rows += 1
            at = datetime.fromtimestamp(minute * MINUTE, UTC)
            rows.append(ResultRow(self._rows, site_id, banner_key, topic, at, *counted))
        self._counted = {}
        self._windows.add(rows)
        self._windows.drop_old(now)
        for site_id, sums in self._windows.take_changed().items():
            self._results[site_id] = build_results(sums, self._rows)
        self._auctions.advance(rows, capped, now)
