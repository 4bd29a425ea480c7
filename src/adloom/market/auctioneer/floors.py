"""Floors that move: a sweep for each category of a site, advanced every quarter of an hour."""

# pure

from typing import Final

import msgspec

from adloom.auction.floor_sweep import SweepState, TickResult, advance
from adloom.core.ids import SiteId
from adloom.core.money import Micros
from adloom.market.auctioneer.select import Ancestors, add_ancestors
from adloom.market.auctioneer.state import AuctioneerState, FloorTick, HeldBids, SiteTerms
from adloom.market.bids import list_allowed
from adloom.runtime.actors.actor import Effect, RecordRow

# A tick that comes twice or late is dropped; one of so long before is of a clock that was ahead, and was set back.
LATE_TICKS_MAX: Final = 8

_changed = msgspec.structs.replace


class FloorRow(msgspec.Struct, frozen=True):
    """A row: the floor of a category on a site with the evidence for it, as of a tick."""

    site_id: SiteId
    category: str
    tick: int
    state: SweepState


def with_floors(terms: SiteTerms, floors: dict[str, SweepState]) -> SiteTerms:
    """Return a site's terms with its moving floors; none of them where floors are fixed."""
    found = {category: Micros(max(one.floor, terms.floor_min)) for category, one in floors.items()}
    return _changed(terms, category_floors=found if terms.is_sweeping else {})


def take_tick(
    state: AuctioneerState, tick: FloorTick, ancestors: Ancestors, effects: list[Effect]
) -> AuctioneerState:
    """Advance the floor of each category that has been auctioned; where it moves, its pages are auctioned again."""
    terms = state.terms
    is_known = state.tick - LATE_TICKS_MAX <= tick.number <= state.tick
    if terms is None or not terms.is_sweeping or is_known:
        return state
    floors = dict(state.floors)
    for category, held in sorted(state.bids.items()):
        known = floors.get(category) or SweepState(
            floor=terms.find_floor(category), floor_min=terms.floor_min
        )
        impressions, revenue = tick.results.get(category, (0, Micros(0)))
        bids = _list_prices(state, category, held, ancestors)
        result = TickResult(bids=bids, impressions=impressions, revenue=revenue)
        floors[category] = advance(_changed(known, floor_min=terms.floor_min), result)
        effects.append(RecordRow(FloorRow(state.site_id, category, tick.number, floors[category])))
    moved = with_floors(terms, floors)
    changed = frozenset(
        category for category in state.bids if moved.find_floor(category) != terms.find_floor(category)
    )
    due = frozenset(url for category in changed for url in state.by_category.get(category, frozenset[str]()))
    return _changed(
        state,
        terms=moved,
        asked=state.asked[-1:],  # Others were asked under other floors.
        floors=floors,
        tick=tick.number,
        changed=state.changed | changed,
        due=state.due | due,
    )


def _list_prices(
    state: AuctioneerState, category: str, held: HeldBids, ancestors: Ancestors
) -> tuple[Micros, ...]:
    """Return what campaigns bid that may be shown on a page of a category."""
    limited = (*(bid for bids in held.prices for bid in bids), *held.under_floor_limited)
    excluded = frozenset[str]().union(*(one.excluded_categories for one in limited))
    pages = {
        excluded and excluded & add_ancestors(state.pages[url].categories, ancestors)
        for url in state.by_category.get(category, frozenset[str]())
    } or {frozenset[str]()}  # What was found out is kept until there are pages again.
    shown = {
        bid.campaign_id: bid.cpm for page in pages for bids in held.prices for bid in list_allowed(bids, page)
    }
    under = [
        one.cpm
        for one in held.under_floor_limited
        if any(one.excluded_categories.isdisjoint(page) for page in pages)
    ]
    return (*shown.values(), *dict.fromkeys((*under, *held.under_floor)))
