"""The page auctions of a simulated market: the real directory, bidders, rankers and auctioneers write shortlists."""

# pure

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from adloom.auction.site_modes import FloorMode
from adloom.budgets.campaign.demand import DIRECTORY, CampaignDemand, CampaignReady
from adloom.core.delivery import Delivery
from adloom.core.ids import SiteId
from adloom.core.random import Chance
from adloom.forecast.actors import SimulatedActors
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.page_demand import PageDemand
from adloom.market.auctioneer.state import (
    AuctionSlot,
    ConfigureAuctions,
    PageForSale,
    PagesClassified,
    SiteTerms,
)
from adloom.market.kinds import make_kinds
from adloom.market.messages import AllDemand
from adloom.market.results.window import ResultRow, sum_for_rankers
from adloom.market.routing import make_auctioneer_address
from adloom.market.shortlist.model import PageShortlists
from adloom.market.shortlist.table import NO_SHORTLISTS, ListedPage, ShortlistTable
from adloom.runtime.actors.actor import Publish, RecordRow
from adloom.serving.index.site import SiteRow, with_descendants

# Pages of a simulation are never classified again.
FOREVER: Final = datetime.max.replace(tzinfo=UTC)


class PageAuctions:
    """The shortlists of all sites, kept up as in the product."""

    def __init__(self, market: SimulatedMarket, chance: Chance) -> None:
        self._actors = SimulatedActors(make_kinds(), chance, self._on_row)
        self.tables: dict[SiteId, ShortlistTable] = {}
        self._seconds_between = market.page_auction_seconds
        self._auctioned_at = market.starts_at
        self._is_changed = True  # Which campaigns can be shown, since the last auctions.
        self._demand = PageDemand(market)
        now = market.starts_at
        self._demands = {one.campaign_id: one for one in self._demand.build_demands(now)}
        self.lower_bids = self._demand.lower_bids
        self._actors.send(DIRECTORY, AllDemand(1, tuple(self._demands.values())), now)
        for site in market.sites:
            address = make_auctioneer_address(site.id)
            configured = ConfigureAuctions(build_terms(site, market), market.find_approvals(site))
            pages = [
                PageForSale(one.url, 1, one.categories, FOREVER)
                for one in market.pages
                if one.site_key == site.key
            ]
            self._actors.send(address, configured, now)
            self._actors.send(address, PagesClassified(tuple(pages), is_all=True), now)

    def receive(self, update: object, now: datetime) -> None:
        """Send the directory the campaigns with used-up budgets, and those that can pay again."""
        self._send(self._demand.receive(update, now), now)

    def advance(self, rows: Sequence[ResultRow], capped: Collection[int], now: datetime) -> None:
        """Tell rankers what was counted, and do what is due: pages are auctioned again every five minutes.

        In a market that cannot afford that, they are auctioned when it is time, or when campaigns can be shown that
        could not before, or no longer.
        """
        self._send(self._demand.advance(capped, now), now)
        for address, message in sum_for_rankers(rows):
            self._actors.send(address, message, now)
        is_time = (now - self._auctioned_at).total_seconds() >= self._seconds_between
        if is_time or self._is_changed:
            self._auctioned_at, self._is_changed = now, False
            self._actors.wake_due(now)

    def _send(self, demands: Iterable[CampaignDemand], now: datetime) -> None:
        for one in demands:
            known = self._demands[one.campaign_id]
            changed = msgspec.structs.replace(one, version=known.version)
            if changed != known:
                self._is_changed = True
                changed = msgspec.structs.replace(one, version=known.version + 1)
                self._demands[one.campaign_id] = changed
                self._actors.send(DIRECTORY, CampaignReady(changed), now)

    def _on_row(self, effect: Publish | RecordRow) -> None:
        if not isinstance(effect, RecordRow) or not isinstance(effect.row, PageShortlists):
            return
        row = effect.row
        listed = ListedPage(
            row.url, row.version, {one.slot: one.candidates for one in row.slots}, row.expires_at
        )
        known = self.tables.get(row.site_id, NO_SHORTLISTS)
        self.tables[row.site_id] = known.with_changes([listed])


def build_terms(site: SiteRow, market: SimulatedMarket) -> SiteTerms:
    slots: Mapping[str, AuctionSlot] = {
        one.slug: AuctionSlot(one.slug, one.width, one.height, one.floor)
        for one in market.placements
        if one.delivery is Delivery.CONTEXTUAL and one.site_key == site.key
    }
    return SiteTerms(
        version=1,
        domain=site.domain,
        is_suspended=site.is_suspended,
        accepts_filler=site.accepts_filler,
        floor=site.floor,
        is_sweeping=site.floor_mode is FloorMode.SWEEP,
        floor_min=site.floor_min,
        slots=tuple(slots.values()),
        blocked_products=with_descendants(site.blocked_products),
        blocked_domains=frozenset(site.blocked_domains),
    )
