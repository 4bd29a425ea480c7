"""What becomes of all campaigns that want the categories of a site's pages."""

# pure

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from adloom.budgets.campaign.demand import CampaignDemand
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.market.auctioneer.state import ConfigureAuctions, build_slot_terms
from adloom.market.bids import SlotTerms
from adloom.market.report.reach import BEST_FIRST, NOT_APPROVED, REACHED, judge_slots


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
    """Judge each campaign once for each of its categories; pages of a category have those above it, too."""
    slots: dict[str, tuple[SlotTerms, ...]] = {}
    judged: dict[str, dict[CampaignId, tuple[str, Micros]]] = {}
    nodes = {category: (category, *ancestors(category)) for category in categories}
    wanted = frozenset(node for path in nodes.values() for node in path)
    for demand in demands:
        for node in demand.wanted & wanted:
            if node not in slots:
                slots[node] = build_slot_terms(site.terms, site.approvals, node)
            found = judged.setdefault(node, {})
            found[demand.campaign_id] = judge_slots(demand, slots[node]), demand.max_cpm
    return {category: _sum_up(judged.get(node, {}) for node in path) for category, path in nodes.items()}


def _sum_up(judged: Iterable[Mapping[CampaignId, tuple[str, Micros]]]) -> CategoryDemandSummary:
    best: dict[CampaignId, tuple[str, Micros]] = {}
    for found in judged:
        for campaign_id, (name, bid) in found.items():
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
