"""A market to simulate: the catalog as delivery and budgets read it, the traffic, and how visitors respond."""

# pure

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.budgets.lifetime_counts import NO_COUNTS, LifetimeCounts
from adloom.budgets.messages import ConfigureAdvertiser, ConfigureCampaign
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules
from adloom.serving.index.compile import Interner, compile_creatives, compile_index
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.index import Index, replace_placements
from adloom.serving.index.rows import AssignmentRow, Caps, PlacementRow, Snapshot
from adloom.serving.index.site import NO_SITES, SiteRow, compile_site
from adloom.serving.index.steps import run_steps

HOURS_A_WEEK: Final = 168
NO_RATE: Final = 0.0

VisitorFields = tuple[tuple[str, str | bool | None], ...]  # As a request may state them, sorted by name.


class RivalPrices(msgspec.Struct, frozen=True):
    """Bids from outside that a simulated auction has to beat: how often there is one, and its log-normal eCPM."""

    share: float
    median: float  # In micros, per thousand impressions.
    spread: float = 0.0


class TrafficCell(msgspec.Struct, frozen=True, kw_only=True):
    """Visitors of one kind who ask for one placement, or for any auctioned placement of a type."""

    slug: bytes | None = None
    placement_type: str | None = None
    visitor: VisitorFields = ()
    page: str | None = None  # The address that a contextual slot is on.
    hours: Sequence[float]  # Expected requests in the hours of a week, UTC, Monday first.


class SoldPage(msgspec.Struct, frozen=True):
    """A page with contextual slots: what it is about, with confidences."""

    site_key: int
    url: str
    categories: tuple[tuple[str, float], ...]


class VisitorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What visitors do with what they are offered: see it, click, convert."""

    seen: float = 1.0  # The share of offers that are seen.
    click_rate: float = NO_RATE  # Of seen offers, where nothing better is known:
    of_campaign: Mapping[int, float] = {}
    of_banner: Mapping[int, float] = {}  # Of campaigns with several.
    on_placement: Mapping[tuple[int, int], float] = {}  # By campaign and placement.
    conversion_rates: Mapping[int, float] = {}  # Of clicks, by campaign.

    def find_click_rate(self, campaign_key: int, placement_key: int, banner_key: int) -> float:
        found = self.of_banner.get(banner_key)
        if found is None:
            found = self.on_placement.get((campaign_key, placement_key))
        return self.of_campaign.get(campaign_key, self.click_rate) if found is None else found


class NamedCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign of the market, and what it has had before the simulation begins."""

    key: int
    name: str
    config: ConfigureCampaign  # Its total budget is what is left of it.
    is_per_click: bool = False
    counts: LifetimeCounts = NO_COUNTS

    @property
    def id(self) -> CampaignId:
        return self.config.campaign_id


class SimulatedMarket(msgspec.Struct, frozen=True, kw_only=True):
    """All that a simulation needs; immutable, and without any chance."""

    starts_at: datetime
    placements: Sequence[PlacementRow]
    assignments: Sequence[AssignmentRow]
    campaigns: Sequence[NamedCampaign]
    sites: Sequence[SiteRow] = ()
    pages: Sequence[SoldPage] = ()
    creatives: Sequence[CreativeRow] = ()  # What campaigns show in contextual slots.
    approvals: Mapping[int, ApprovalRules] = {}  # By site; where there are none, its mode decides.
    page_auction_seconds: int = 0  # How far apart auctions of pages are at least; 0: as in the product.
    advertisers: Sequence[ConfigureAdvertiser] = ()
    cells: Sequence[TrafficCell]
    response: VisitorResponse
    rivals: Mapping[bytes, RivalPrices] = {}  # By slug.
    click_model: bytes | None = None  # What the policy `learned` knows when it begins.
    visitors: int = 0  # How many different people come; 0: nobody twice.
    scale: float = 1.0  # How many requests each simulated one stands for.
    notes: Sequence[str] = ()  # What the reader of a result must know.

    @property
    def requests_a_week(self) -> float:
        return sum(sum(cell.hours) for cell in self.cells)

    def find_approvals(self, site: SiteRow) -> ApprovalRules:
        return self.approvals.get(site.key) or ApprovalRules(site.approval_mode)

    def compile_index(self) -> Index:
        index = compile_index(
            Snapshot(
                version=1,
                placements=list(self.placements),
                assignments=list(self.assignments),
                banner_ids=[],
                campaign_ids=[],
            )
        )
        by_campaign: dict[CampaignId, list[CreativeRow]] = {}
        for row in self.creatives:
            by_campaign.setdefault(row.assignment.campaign_id, []).append(row)
        shared = Interner()
        sites = [compile_site(row, self.find_approvals(row)) for row in self.sites]
        return replace_placements(
            index,
            version=1,
            gone=(),
            placements=[run_steps(compile_creatives(key, rows, shared)) for key, rows in by_campaign.items()],
            banner_ids=index.banner_ids,
            campaign_ids=index.campaign_ids,
            sites=NO_SITES.replaced((), sites),
        )


def thin_out(market: SimulatedMarket, share: float) -> SimulatedMarket:
    """Return a smaller market of the same proportions: a share of the requests, of all budgets, caps and visitors."""
    if share >= 1:
        return market
    scaled = msgspec.structs.replace

    def scale_caps(caps: Caps | None) -> Caps | None:
        return None if caps is None else Caps(_scale(caps.impressions, share), _scale(caps.clicks, share))

    return scaled(
        market,
        cells=[scaled(cell, hours=[hour * share for hour in cell.hours]) for cell in market.cells],
        assignments=[scaled(row, caps=scale_caps(row.caps)) for row in market.assignments],
        creatives=[
            scaled(row, assignment=scaled(row.assignment, caps=scale_caps(row.assignment.caps)))
            for row in market.creatives
        ],
        campaigns=[_thin_out_campaign(one, share) for one in market.campaigns],
        advertisers=[
            scaled(one, daily_budget=_scale_money(one.daily_budget, share)) for one in market.advertisers
        ],
        visitors=max(1, round(market.visitors * share)) if market.visitors else 0,
        scale=market.scale / share,
    )


def _thin_out_campaign(campaign: NamedCampaign, share: float) -> NamedCampaign:
    config = campaign.config
    return msgspec.structs.replace(
        campaign,
        config=msgspec.structs.replace(
            config,
            daily_budget=_scale_money(config.daily_budget, share),
            total_budget=_scale_money(config.total_budget, share),
            impression_cap=_scale(config.impression_cap, share),
            click_cap=_scale(config.click_cap, share),
        ),
        counts=LifetimeCounts(int(campaign.counts.impressions * share), int(campaign.counts.clicks * share)),
    )


def _scale(number: int | None, share: float) -> int | None:
    return None if number is None else int(number * share)


def _scale_money(amount: Micros | None, share: float) -> Micros | None:
    return None if amount is None else Micros(int(amount * share))
