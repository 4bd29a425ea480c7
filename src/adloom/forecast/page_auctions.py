"""The page auctions of a simulated market: the real directory, bidders, rankers and auctioneers write shortlists."""

# pure

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.auction.site_modes import FloorMode
from adloom.budgets.campaign.demand import DIRECTORY, CampaignDemand, CampaignReady, WantedCreative
from adloom.budgets.messages import BudgetVerdict, CampaignExhausted, CampaignRestored
from adloom.core.delivery import Delivery
from adloom.core.ids import CampaignId, SiteId
from adloom.core.money import Micros
from adloom.core.random import Chance
from adloom.forecast.actors import SimulatedActors
from adloom.forecast.market import SimulatedMarket
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
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.rows import AssignmentStatus
from adloom.serving.index.site import SiteRow, with_descendants
from adloom.targeting.values import find_landing_domain

SPENT: Final = frozenset(
    {BudgetVerdict.DAILY_BUDGET, BudgetVerdict.TOTAL_BUDGET, BudgetVerdict.ADVERTISER_BUDGET}
)
# Pages of a simulation are never classified again.
FOREVER: Final = datetime.max.replace(tzinfo=UTC)


class PageAuctions:
    """The shortlists of all sites, kept up as in the product."""

    def __init__(self, market: SimulatedMarket, chance: Chance) -> None:
        self._actors = SimulatedActors(make_kinds(), chance, self._on_row)
        self.tables: dict[SiteId, ShortlistTable] = {}
        self._seconds_between = market.page_auction_seconds
        self._auctioned_at = market.starts_at
        self._is_changed = True  # Which campaigns can pay, since the last auctions.
        self._demands = {one.campaign_id: one for one in build_demands(market.creatives)}
        now = market.starts_at
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
        if isinstance(update, CampaignExhausted | CampaignRestored):
            demand = self._demands.get(CampaignId(update.campaign_id))
            is_spent = isinstance(update, CampaignExhausted) and update.verdict in SPENT
            if demand is not None and demand.is_spent is not is_spent:
                changed = msgspec.structs.replace(demand, is_spent=is_spent, version=demand.version + 1)
                self._demands[demand.campaign_id] = changed
                self._is_changed = True
                self._actors.send(DIRECTORY, CampaignReady(changed), now)

    def advance(self, rows: Sequence[ResultRow], now: datetime) -> None:
        """Tell rankers what was counted, and do what is due: pages are auctioned again every five minutes.

        In a market that cannot afford that, they are auctioned when it is time, or when a campaign has nothing left.
        """
        for address, message in sum_for_rankers(rows):
            self._actors.send(address, message, now)
        is_time = (now - self._auctioned_at).total_seconds() >= self._seconds_between
        if is_time or self._is_changed:
            self._auctioned_at, self._is_changed = now, False
            self._actors.wake_due(now)

    def _on_row(self, effect: Publish | RecordRow) -> None:
        if not isinstance(effect, RecordRow) or not isinstance(effect.row, PageShortlists):
            return
        row = effect.row
        listed = ListedPage(
            row.url, row.version, {one.slot: one.candidates for one in row.slots}, row.expires_at
        )
        known = self.tables.get(row.site_id, NO_SHORTLISTS)
        self.tables[row.site_id] = known.with_changes([listed])


def build_demands(creatives: Sequence[CreativeRow]) -> list[CampaignDemand]:
    """Return the campaigns as bidders know them: those with something to show."""
    by_campaign: dict[UUID, list[CreativeRow]] = {}
    for row in (one for one in creatives if one.assignment.status is AssignmentStatus.LIVE):
        by_campaign.setdefault(row.assignment.campaign_id, []).append(row)
    return [_build_demand(rows) for rows in by_campaign.values()]


def _build_demand(rows: Sequence[CreativeRow]) -> CampaignDemand:
    first, terms = rows[0].assignment, rows[0].terms
    return CampaignDemand(
        campaign_id=first.campaign_id,
        advertiser_id=first.advertiser_id,
        version=1,
        max_cpm=first.bid or Micros(0),
        categories=terms.categories,
        creatives=tuple(
            WantedCreative(
                row.assignment.banner_id,
                row.terms.width,
                row.terms.height,
                find_landing_domain(row.assignment.cta_url),
            )
            for row in rows
        ),
        takes_filler=terms.takes_filler,
        product_category=terms.product_category,
        blocked_domains=frozenset(terms.blocked_sites),
        excluded_categories=frozenset(terms.excluded_categories),
        is_restricted=bool(first.rules or any(row.assignment.frequency for row in rows)),
    )


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
