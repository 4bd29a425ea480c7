"""From the bids of a page's categories to the shortlist of a slot."""

# pure

import heapq
import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from adloom.core.ids import BannerId, CampaignId
from adloom.market.bids import SlotBid

CATEGORIES_MAX: Final = 3
ANCESTOR_FACTOR: Final = 0.7  # Of the score, for each step up from the page's own category.
CAMPAIGNS_A_SLOT: Final = 3

Ancestors = Callable[[str], Sequence[str]]

_order = operator.attrgetter("order")


def expand_categories(
    confidences: Iterable[tuple[str, float]],
    weight_of: Callable[[str], float],
    ancestors: Ancestors,
) -> dict[str, float]:
    """Score a page's best categories and their ancestors, the best first; one reached twice has its best score.

    `ancestors` are a category's, the nearest first.
    """
    best = sorted(confidences, key=lambda one: (-one[1], one[0]))[:CATEGORIES_MAX]
    scores: dict[str, float] = {}
    for category, confidence in best:
        score = confidence * weight_of(category)
        for node in (category, *ancestors(category)):
            if score > scores.get(node, -1.0):
                scores[node] = score
            score *= ANCESTOR_FACTOR
    return dict(sorted(scores.items(), key=lambda one: (-one[1], one[0])))


def add_ancestors(confidences: Iterable[tuple[str, float]], ancestors: Ancestors) -> frozenset[str]:
    """Return a page's categories and all above them."""
    return frozenset(node for own, _ in confidences for node in (own, *ancestors(own)))


def select_fairly(lists: Sequence[Sequence[SlotBid]], *, count_max: int = CAMPAIGNS_A_SLOT) -> list[SlotBid]:
    """Take one creative of each of the best campaigns; where there are few, fill up with their next creatives.

    The lists are of categories, the one that fits best first, and each in order: a creative is taken under the
    first that has it. Only as much of them is read as is needed.
    """
    chosen: dict[CampaignId, SlotBid] = {}
    more: dict[tuple[BannerId, CampaignId], SlotBid] = {}
    # The merge is stable: of equal bids that of the earlier list comes first.
    for bid in heapq.merge(*lists, key=_order):
        first = chosen.setdefault(bid.campaign_id, bid)
        if first is bid:
            if len(chosen) == count_max:
                return list(chosen.values())
        elif bid.banner_id != first.banner_id:
            more.setdefault((bid.banner_id, bid.campaign_id), bid)
    return [*chosen.values(), *islice(more.values(), count_max - len(chosen))]
