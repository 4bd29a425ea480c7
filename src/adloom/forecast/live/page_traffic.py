"""The traffic of contextual slots: pages of the same categories are one, and visitors are of the kinds seen on the slot.

A slot's requests come by the hour, and go to its pages as in the whole week. Requests of pages beyond a bound go to
those that are kept, in proportion: pages that fit the campaign which is asked about stand for others that fit, and the
rest for the rest.
"""

# pure

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.forecast.market import SoldPage, VisitorFields
from adloom.market.approval import ApprovalRules
from adloom.pages.model import PageCategory
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.site import SiteRow
from adloom.taxonomy.iab import load_content

CONFIDENCE_PLACES: Final = 1
KINDS_MAX: Final = 4  # Of visitors on a slot; the others together are one more, of which nothing is known.
OTHERS_SHARE: Final = 4  # One in so many of the pages that are kept does not fit the campaign.

Kind = tuple[str | None, str | None]  # Country and device.
_Group = tuple[int, bool, tuple[tuple[str, float], ...]]  # Site, whether it fits, and categories.


class SlotHour(msgspec.Struct, frozen=True):
    """Requests of a contextual slot in an hour, and how many of them were filled."""

    placement_key: int
    hour: datetime
    requests: int
    filled: int


class PageVisits(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of a slot on a page, in the days that are known."""

    placement_key: int
    site_key: int
    url: str
    categories: tuple[PageCategory, ...]
    requests: int
    fits: bool = False  # The campaign that is asked about wants it, before or after the change.


class PageShare(msgspec.Struct, frozen=True):
    """A page that is simulated, and its part of the requests of a slot."""

    placement_key: int
    page: SoldPage
    share: float


class WantedPages(msgspec.Struct, frozen=True):
    """The pages that a campaign bids for, before or after a change, and those that it excludes both times."""

    categories: frozenset[str] = frozenset()
    takes_filler: bool = False
    excluded: frozenset[str] = frozenset()

    @property
    def is_any(self) -> bool:
        return bool(self.categories) or self.takes_filler

    def fits(self, page: Collection[PageCategory]) -> bool:
        if any(one.id in self.excluded for one in page):
            return False
        return any(one.id in self.categories for one in page) if page else self.takes_filler


class ContextualRows(msgspec.Struct, frozen=True, kw_only=True):
    """The contextual part of an installation; its placements are read with the others."""

    placement_keys: Sequence[int] = ()
    hours: Sequence[SlotHour] = ()
    pages: Sequence[PageShare] = ()
    sites: Sequence[SiteRow] = ()
    approvals: dict[int, ApprovalRules] = {}
    creatives: Sequence[CreativeRow] = ()


NO_CONTEXTUAL: Final = ContextualRows()


def expand_wanted(
    categories: Collection[str], *, takes_filler: bool, excluded: Collection[str] = ()
) -> WantedPages:
    """Add all that is below the categories: a campaign that wants sports has pages about soccer."""
    return WantedPages(add_descendants(categories), takes_filler, add_descendants(excluded))


def add_descendants(categories: Collection[str]) -> frozenset[str]:
    return frozenset(categories).union(*(load_content().list_descendants(one) for one in categories))


def group_pages(visits: Iterable[PageVisits], *, pages_max: int) -> list[PageShare]:
    """Take pages of a site with the same categories for one, and keep the busiest."""
    groups: dict[_Group, dict[int, int]] = {}
    names: dict[_Group, str] = {}
    totals: dict[tuple[int, bool], int] = {}
    for one in sorted(visits, key=lambda visit: (-visit.requests, visit.url, visit.placement_key)):
        categories = tuple(
            (category.id, round(category.confidence, CONFIDENCE_PLACES)) for category in one.categories
        )
        key = one.site_key, one.fits, categories
        names.setdefault(key, one.url)
        slots = groups.setdefault(key, {})
        slots[one.placement_key] = slots.get(one.placement_key, 0) + one.requests
        total = one.placement_key, one.fits
        totals[total] = totals.get(total, 0) + one.requests
    busiest = sorted(groups, key=lambda key: (-sum(groups[key].values()), names[key]))
    fitting = [key for key in busiest if key[1]]
    others = [key for key in busiest if not key[1]]
    room_for_others = pages_max if not fitting else max(pages_max // OTHERS_SHARE, pages_max - len(fitting))
    kept = [*fitting[: pages_max - min(len(others), room_for_others)], *others[:room_for_others]]
    return _share_out(kept, groups, names, totals)


def _share_out(
    kept: Sequence[_Group],
    groups: Mapping[_Group, Mapping[int, int]],
    names: Mapping[_Group, str],
    totals: Mapping[tuple[int, bool], int],
) -> list[PageShare]:
    """Give each kept page its part of a slot, with that of the pages that it represents."""
    known: dict[tuple[int, bool], int] = {}
    for key in kept:
        for placement_key, requests in groups[key].items():
            known[placement_key, key[1]] = known.get((placement_key, key[1]), 0) + requests
    of_slot: dict[int, int] = {}
    for (placement_key, _), requests in totals.items():
        of_slot[placement_key] = of_slot.get(placement_key, 0) + requests
    return [
        PageShare(
            placement_key,
            SoldPage(site_key, names[site_key, fits, categories], categories),
            requests
            / known[placement_key, fits]
            * totals[placement_key, fits]
            / max(1, of_slot[placement_key]),
        )
        for site_key, fits, categories in kept
        for placement_key, requests in groups[site_key, fits, categories].items()
    ]


def share_kinds(seen: Mapping[Kind, int]) -> list[tuple[VisitorFields, float]]:
    """Return the kinds of visitors on a slot, and the part that each is of them."""
    total = sum(seen.values())
    if not total:
        return [(describe_kind(None, None), 1.0)]
    ordered = sorted(seen, key=lambda kind: (-seen[kind], repr(kind)))
    shares: dict[VisitorFields, float] = {}
    for place, kind in enumerate(ordered):
        fields = describe_kind(*kind) if place < KINDS_MAX else describe_kind(None, None)
        shares[fields] = shares.get(fields, 0.0) + seen[kind] / total
    return list(shares.items())


def describe_kind(country: str | None, device: str | None) -> VisitorFields:
    return (("country", country), ("device", device))


def find_seen_share(filled: int, impressions: int) -> float:
    """Return the part of filled requests that was seen: only these count, as of other placements."""
    return min(1.0, impressions / filled) if filled > 0 else 1.0
