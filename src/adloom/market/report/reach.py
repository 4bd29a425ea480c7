"""Where a campaign's contextual bids reach: pages by site, and what keeps it from the others."""

# pure

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from adloom.budgets.campaign.demand import CampaignDemand
from adloom.core.ids import CampaignId, SiteId
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.market.auctioneer.state import ConfigureAuctions, SiteTerms, build_slot_terms
from adloom.market.bids import BELOW_FLOOR, SlotTerms, check_demand
from adloom.taxonomy.iab import OfContentNode

REACHED: Final = "reached"
NOT_APPROVED: Final = "not_approved"
SITE_SUSPENDED: Final = "site_suspended"
NO_SLOTS: Final = "no_slots"
CATEGORY_EXCLUDED: Final = "category_excluded"
CAMPAIGN_INACTIVE: Final = "campaign_inactive"
# A page is told by the best of what becomes of the campaign in its slots.
BEST_FIRST: Final = (
    REACHED,
    CAMPAIGN_INACTIVE,
    NOT_APPROVED,
    BELOW_FLOOR,
    "rejected",
    "domain_blocked",
    "size_mismatch",
    "no_creatives",
    "ad_product_blocked",
    "site_blocked",
    CATEGORY_EXCLUDED,
)


class PageGroup(msgspec.Struct, frozen=True):
    """Pages of a site that fit the same categories of the campaign; filler is a category, too."""

    categories: tuple[str, ...]
    pages: int
    is_excluded: bool = False  # The pages have a category, too, that the campaign excludes.


class OfferedSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site with pages that the campaign wants."""

    site_id: SiteId
    terms: SiteTerms
    approvals: ApprovalRules
    groups: tuple[PageGroup, ...]


class SiteReach(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a campaign on the pages of a site that it wants.

    `removed` counts pages by what keeps the campaign from them, as explanations name it.
    """

    site_id: SiteId
    domain: str
    pages: int
    reached: int
    removed: Mapping[str, int]
    bid_missing: Micros | None = None  # The least that its bid is under a floor.


class CategoryReach(OfContentNode, frozen=True):
    """One of the campaign's categories, and how many pages there are about it or what is below it."""

    pages: int


class CampaignReach(msgspec.Struct, frozen=True, kw_only=True):
    """Where a campaign's contextual bids reach; sites with most pages first."""

    creatives: int
    sites: tuple[SiteReach, ...]
    categories: tuple[CategoryReach, ...]

    @property
    def pages(self) -> int:
        """All pages that fit its categories."""
        return sum(one.pages for one in self.sites)

    @property
    def reached(self) -> int:
        """The pages where it is a candidate that may be shown."""
        return sum(one.reached for one in self.sites)

    def count_removed(self, *names: str) -> int:
        return sum(one.removed.get(name, 0) for one in self.sites for name in names)

    def list_sites(self, *names: str) -> list[SiteReach]:
        """Return the sites where one of these keeps the campaign from a page."""
        return [one for one in self.sites if any(name in one.removed for name in names)]


def find_reach(demand: CampaignDemand, sites: Iterable[OfferedSite]) -> CampaignReach:
    """Judge all pages that a campaign wants, as their auctions would."""
    offered = list(sites)
    judged = sorted((_judge_site(demand, site) for site in offered), key=lambda one: (-one.pages, one.domain))
    pages = dict.fromkeys(demand.categories, 0)
    for group in (group for site in offered for group in site.groups):
        for category in group.categories:
            if category in pages:
                pages[category] += group.pages
    return CampaignReach(
        creatives=len(demand.creatives),
        sites=tuple(judged),
        categories=tuple(CategoryReach(category, count) for category, count in pages.items()),
    )


def _judge_site(demand: CampaignDemand, site: OfferedSite) -> SiteReach:
    removed: dict[str, int] = {}
    missing: list[Micros] = []
    for group in site.groups:
        name, lacking = _judge_group(demand, site, group)
        removed[name] = removed.get(name, 0) + group.pages
        missing += lacking if name == BELOW_FLOOR else ()
    reached = removed.pop(REACHED, 0)
    return SiteReach(
        site_id=site.site_id,
        domain=site.terms.domain,
        pages=reached + sum(removed.values()),
        reached=reached,
        removed=removed,
        bid_missing=min(missing, default=None),
    )


def _judge_group(demand: CampaignDemand, site: OfferedSite, group: PageGroup) -> tuple[str, list[Micros]]:
    """Return the best of what becomes of the campaign, and how much its bid is under each floor above it."""
    if site.terms.is_suspended:
        return SITE_SUSPENDED, []
    if group.is_excluded:
        return CATEGORY_EXCLUDED, []
    slots = [
        slot
        for category in group.categories
        for slot in build_slot_terms(site.terms, site.approvals, category)
    ]
    return judge_slots(demand, slots), [
        Micros(slot.floor - demand.max_cpm) for slot in slots if slot.floor > demand.max_cpm
    ]


def judge_slots(demand: CampaignDemand, slots: Iterable[SlotTerms]) -> str:
    """Return the best of what becomes of a campaign in slots."""
    return min((_judge_slot(demand, slot) for slot in slots), key=BEST_FIRST.index, default=NO_SLOTS)


def _judge_slot(demand: CampaignDemand, slot: SlotTerms) -> str:
    reason, creatives = check_demand(demand, slot)
    if reason is not None:
        return reason
    states = {slot.approvals.judge(one.banner_id, demand.advertiser_id) for one in creatives}
    return REACHED if ApprovalState.APPROVED in states else NOT_APPROVED


def group_pages(
    found: Iterable[tuple[Sequence[str], int, bool]], wanted: Mapping[str, Sequence[str]]
) -> tuple[PageGroup, ...]:
    """Group pages by the campaign's categories that they fit, and by whether it excludes them.

    `found` counts pages by their own categories; `wanted` has, by a page's category, the campaign's that it is below.
    """
    counts: dict[tuple[tuple[str, ...], bool], int] = {}
    for own, pages, is_excluded in found:
        fitting = tuple(sorted({category for one in own for category in wanted.get(one, ())}))
        if fitting:
            counts[fitting, is_excluded] = counts.get((fitting, is_excluded), 0) + pages
    return tuple(
        PageGroup(categories, pages, is_excluded) for (categories, is_excluded), pages in counts.items()
    )


class CategoryDemandSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The campaigns that want a category or one above it, by what becomes of them on a site."""

    campaigns: int = 0
    bidding: int = 0
    pending: int = 0
    removed: Mapping[str, int] = {}
    highest: Micros | None = None  # Of those that may be shown.


def sum_up_demand(
    categories: Iterable[str],
    demands: Iterable[CampaignDemand],
    site: ConfigureAuctions,
    ancestors: Callable[[str], Sequence[str]],
) -> dict[str, CategoryDemandSummary]:
    """Judge each campaign once for each of its categories; pages of a category have those above it, too.

    Those whose budgets, caps or dates leave nothing now are `campaign_inactive`, if they could be shown otherwise.
    """
    slots: dict[str, tuple[SlotTerms, ...]] = {}
    judged: dict[str, dict[CampaignId, tuple[str, Micros]]] = {}
    excluded: dict[CampaignId, frozenset[str]] = {}
    nodes = {category: (category, *ancestors(category)) for category in categories}
    wanted = frozenset(node for path in nodes.values() for node in path)
    for demand in demands:
        if demand.excluded_categories:
            excluded[demand.campaign_id] = demand.excluded_categories
        for node in demand.wanted & wanted:
            if node not in slots:
                slots[node] = build_slot_terms(site.terms, site.approvals, node)
            found = judged.setdefault(node, {})
            what = judge_slots(demand, slots[node])
            is_out = demand.is_spent and what == REACHED
            found[demand.campaign_id] = CAMPAIGN_INACTIVE if is_out else what, demand.max_cpm
    return {
        category: _sum_up(
            (judged.get(node, {}) for node in path),
            {campaign_id for campaign_id, own in excluded.items() if not own.isdisjoint(path)},
        )
        for category, path in nodes.items()
    }


def _sum_up(
    judged: Iterable[Mapping[CampaignId, tuple[str, Micros]]], excluding: Collection[CampaignId]
) -> CategoryDemandSummary:
    best: dict[CampaignId, tuple[str, Micros]] = {}
    for found in judged:
        for campaign_id, (what, bid) in found.items():
            name = CATEGORY_EXCLUDED if campaign_id in excluding else what
            known = best.get(campaign_id)
            if known is None or _place(name) < _place(known[0]):
                best[campaign_id] = name, bid
    counts = Counter(name for name, _ in best.values())
    return CategoryDemandSummary(
        campaigns=len(best),
        bidding=counts.pop(REACHED, 0),
        pending=counts.pop(NOT_APPROVED, 0),
        removed=dict(counts),
        highest=max((bid for name, bid in best.values() if name == REACHED), default=None),
    )


def _place(name: str) -> int:
    return BEST_FIRST.index(name) if name in BEST_FIRST else len(BEST_FIRST)
