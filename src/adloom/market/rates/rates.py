"""Pages and going rates by category. A rate is a band of round numbers: nobody reads a rival's price off it."""

# pure

import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from adloom.core.ids import AdvertiserId
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.taxonomy.iab import OfContentNode

# With fewer advertisers the band would be about one of them.
ADVERTISERS_MIN: Final = 3
# Bands begin and end at one of these; a bid above the last has no upper end.
STEPS: Final = tuple(
    Micros(round(step * MICROS_PER_UNIT))
    for step in (0, 0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)
)
QUARTER: Final = 4


class PageCount(msgspec.Struct, frozen=True):
    """How many fresh pages of a site have exactly these categories."""

    site_key: int
    categories: tuple[str, ...]
    pages: int


class CategoryBid(msgspec.Struct, frozen=True):
    """What a campaign pays at most, for which categories, and which of them with all below it does not want."""

    advertiser_id: AdvertiserId | None
    cpm: Micros
    categories: tuple[str, ...]
    excluded: tuple[str, ...] = ()


class Band(msgspec.Struct, frozen=True):
    """Where the middle half of bids lies; without `high` beyond the last step."""

    low: Micros
    high: Micros | None


class CategoryRate(OfContentNode, frozen=True, kw_only=True):
    """A category with pages about it or what is below it, and the bids that compete for them."""

    pages: int
    sites: int
    campaigns: int
    band: Band | None


def find_band(bids: Sequence[CategoryBid]) -> Band | None:
    """Return the band of bids, or None where it would tell what one advertiser pays."""
    if len({bid.advertiser_id for bid in bids}) < ADVERTISERS_MIN:
        return None
    prices = sorted(bid.cpm for bid in bids)
    low, high = prices[len(prices) // QUARTER], prices[-1 - len(prices) // QUARTER]
    below = bisect.bisect_right(STEPS, low) - 1
    above = max(bisect.bisect_left(STEPS, high), below + 1)
    return Band(STEPS[below], STEPS[above] if above < len(STEPS) else None)


def rate_categories(
    counts: Iterable[PageCount], bids: Iterable[CategoryBid], ancestors: Callable[[str], Sequence[str]]
) -> list[CategoryRate]:
    """Rate all categories with pages or bids, those with most pages first.

    A page counts once for a category, its own or one above. On a page bid those who want its category or one above.
    """
    pages: dict[str, int] = {}
    sites: dict[str, set[int]] = {}
    for count in counts:
        for category in {node for own in count.categories for node in (own, *ancestors(own))}:
            pages[category] = pages.get(category, 0) + count.pages
            sites.setdefault(category, set()).add(count.site_key)
    wanted: dict[str, list[CategoryBid]] = {}
    for bid in bids:
        for category in bid.categories:
            wanted.setdefault(category, []).append(bid)
    return sorted(
        (
            _rate(category, pages.get(category, 0), len(sites.get(category, ())), wanted, ancestors(category))
            for category in pages.keys() | wanted.keys()
        ),
        key=lambda one: (-one.pages, one.id),
    )


def _rate(
    category: str, pages: int, sites: int, wanted: dict[str, list[CategoryBid]], above: Sequence[str]
) -> CategoryRate:
    competing = list(wanted.get(category, ()))
    nodes = {category}
    for node in above:
        # A campaign may want both a category and one above it.
        competing += [bid for bid in wanted.get(node, ()) if nodes.isdisjoint(bid.categories)]
        nodes.add(node)
    competing = [bid for bid in competing if nodes.isdisjoint(bid.excluded)]
    return CategoryRate(
        id=category, pages=pages, sites=sites, campaigns=len(competing), band=find_band(competing)
    )
