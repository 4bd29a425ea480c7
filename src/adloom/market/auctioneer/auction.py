"""The auctions of some pages, from the bids and quotes that the auctioneer holds."""

# pure

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from adloom.core.random import Chance
from adloom.market.approval import ApprovalState
from adloom.market.auctioneer.select import (
    Ancestors,
    add_ancestors,
    expand_categories,
    select_fairly,
)
from adloom.market.auctioneer.state import (
    AuctioneerState,
    HeldQuote,
    PageForSale,
    WrittenShortlists,
    group_slots,
)
from adloom.market.bids import SlotBid, list_allowed
from adloom.market.shortlist.model import (
    ApprovalSeen,
    PageShortlists,
    Shortlist,
    ShortlistCandidate,
)
from adloom.market.weights import blend, draw_weight
from adloom.runtime.actors.actor import Effect, RecordRow
from adloom.taxonomy.topics import FILLER

# Those who may be shown, those who may be at some requests only, those who may be once they can again, and those
# who wait for a decision. None takes a place of one before it.
Selected = tuple[list[SlotBid], list[SlotBid], list[SlotBid], list[SlotBid]]
APPROVALS: Final = (*(ApprovalState.APPROVED,) * 3, ApprovalState.PENDING)
FILLER_SCORE: Final = 0.5
NO_QUOTE: Final = HeldQuote()

_changed = msgspec.structs.replace


def score_categories(state: AuctioneerState, page: PageForSale, ancestors: Ancestors) -> dict[str, float]:
    """Return the categories that a page is sold under, the best first; a page without any is sold as filler."""
    if not page.categories:
        accepts_filler = state.terms is not None and state.terms.accepts_filler
        return {FILLER: FILLER_SCORE} if accepts_filler else {}
    quotes = state.quotes
    return expand_categories(
        page.categories, lambda category: quotes.get(category, NO_QUOTE).weight, ancestors
    )


def redraw(quote: HeldQuote, now: datetime, chance: Chance) -> HeldQuote:
    """Draw a new weight from what is known now."""
    counts = blend(quote.site.decay(now), quote.everywhere.decay(now))
    return _changed(quote, weight=draw_weight(counts, chance))


def auction_pages(
    state: AuctioneerState, urls: Iterable[str], now: datetime, ancestors: Ancestors, effects: list[Effect]
) -> AuctioneerState:
    """Auction pages again; only what has changed is recorded, under one new version."""
    assert state.terms is not None, "a site without configuration has no auctions"
    shortlists, empty = dict(state.shortlists), dict(state.empty)
    version = max(state.version + 1, int(now.timestamp() * 1_000_000))
    auction = _Auction(state, now, ancestors, effects)
    for url in urls:
        page = state.pages.get(url)
        if page is None:
            continue
        scores = score_categories(state, page, ancestors)
        if url in shortlists and not auction.has_all_bids(scores):
            continue  # What is written stays until the bidders answer, and they are asked again.
        slots = auction.fill(scores, page)
        if any(slot.candidates for slot in slots):
            empty.pop(url, None)
        else:
            empty[url] = empty.get(url, 0) + 1
        written = WrittenShortlists(slots, page.expires_at)
        if written == shortlists.get(url):
            continue
        shortlists[url] = written
        row = PageShortlists(
            site_id=state.site_id,
            url=url,
            version=version,
            slots=slots,
            updated_at=now,
            expires_at=page.expires_at,
        )
        effects.append(RecordRow(row))
    return _changed(
        state,
        shortlists=shortlists,
        empty=empty,
        version=version,
        approvals=_changed(state.approvals, decided=auction.decided),
    )


class _Auction:
    """What the pages of one run share: selections by categories, and approvals of banners seen for the first time."""

    def __init__(
        self, state: AuctioneerState, now: datetime, ancestors: Ancestors, effects: list[Effect]
    ) -> None:
        assert state.terms is not None
        self._state = state
        self._ancestors = ancestors
        self._terms = state.terms
        self._now = now
        self._effects = effects
        self._groups = group_slots(state.terms)
        version = state.terms.version
        # Bids for other terms are for other slots, and perhaps under another floor.
        self._bids = {
            category: held.slots for category, held in state.bids.items() if held.terms_version == version
        }
        self._excluded = frozenset[str]().union(*(held.excluded for held in state.bids.values()))
        self._selected: dict[tuple[int, tuple[str, ...], frozenset[str]], Selected] = {}
        self._built: dict[tuple[tuple[int, bytes, bytes], str, float, bool], ShortlistCandidate] = {}
        self.decided = dict(state.approvals.decided)

    def has_all_bids(self, categories: Iterable[str]) -> bool:
        return all(category in self._bids for category in categories)

    def fill(self, scores: dict[str, float], page: PageForSale) -> tuple[Shortlist, ...]:
        wanted = tuple(category for category in scores if category in self._bids)
        excluded = self._excluded and self._excluded & add_ancestors(page.categories, self._ancestors)
        candidates = [
            (
                *(
                    self._build(bid, scores[bid.category], is_pending=False)
                    for bid in (*shown, *restricted, *spent)
                ),
                *(self._build(bid, scores[bid.category], is_pending=True) for bid in pending),
            )
            for shown, restricted, spent, pending in (
                self._select(group, wanted, excluded) for group in range(len(self._groups))
            )
        ]
        return tuple(
            Shortlist(slot=slot.slug, candidates=candidates[self._groups[slot.as_group()]])
            for slot in self._terms.slots
        )

    def _build(self, bid: SlotBid, score: float, *, is_pending: bool) -> ShortlistCandidate:
        """Return a candidate; pages that fit as well share it, to save memory."""
        key = bid.order, bid.category, score, is_pending
        known = self._built.get(key)
        if known is None:
            known = self._built[key] = self._build_new(bid, score, is_pending=is_pending)
        return known

    def _build_new(self, bid: SlotBid, score: float, *, is_pending: bool) -> ShortlistCandidate:
        return ShortlistCandidate(
            banner_id=bid.banner_id,
            campaign_id=bid.campaign_id,
            advertiser_id=bid.advertiser_id,
            category=None if bid.category == FILLER else bid.category,
            category_score=score,
            cpm=bid.cpm,
            floor=self._terms.find_floor(bid.category),
            is_pending=is_pending,
        )

    def _select(self, group: int, wanted: tuple[str, ...], excluded: frozenset[str]) -> Selected:
        """Select for a group of slots: the best that may be shown, and the best that wait for a decision.

        `excluded` are the page's categories, and those above, that any campaign excludes.
        """
        known = self._selected.get((group, wanted, excluded))
        if known is None:
            bids = [self._bids[category][group] for category in wanted]
            count_max = self._state.campaigns_listed
            known = (
                select_fairly([list_allowed(one.bids, excluded) for one in bids], count_max=count_max),
                select_fairly([list_allowed(one.restricted, excluded) for one in bids], count_max=count_max),
                select_fairly([list_allowed(one.spent, excluded) for one in bids], count_max=count_max),
                select_fairly([list_allowed(one.pending, excluded) for one in bids], count_max=count_max),
            )
            for approval, selected in zip(APPROVALS, known, strict=True):
                for bid in selected:
                    self._see(bid, approval)
            self._selected[group, wanted, excluded] = known
        return known

    def _see(self, bid: SlotBid, approval: ApprovalState) -> None:
        """Record a banner that is seen for the first time, or that the site's mode approves by now."""
        known = self.decided.get(bid.banner_id)
        if known is approval or known not in {None, ApprovalState.PENDING}:
            return
        self.decided[bid.banner_id] = approval
        seen = ApprovalSeen(
            site_id=self._state.site_id,
            banner_id=bid.banner_id,
            campaign_id=bid.campaign_id,
            advertiser_id=bid.advertiser_id,
            state=approval,
            at=self._now,
        )
        self._effects.append(RecordRow(seen))
