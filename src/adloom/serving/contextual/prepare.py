"""Slots of pages as far as they are the same for every visitor: which ads may fill them, with all that a request needs.

Preparing checks every candidate of a shortlist against page, site and catalog. It is done again when one of these is
replaced; a request looks only at what depends on the moment, the visitor and money.
"""

# pure

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from adloom.auction.beta_draws import ReadyDraw
from adloom.auction.creative_choice import PreparedContender, prepare_contender
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.events.ingest.token import build_charge
from adloom.market.results.window import SiteResults
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.market.shortlist.table import ListedPage
from adloom.pages.follow.page_table import PageEntry
from adloom.serving.contextual.decide import (
    BELOW_FLOOR,
    CAMPAIGN_INACTIVE,
    NO_DEMAND,
    SlotRules,
    find_removal,
    name_payer,
)
from adloom.serving.index.bid_block import lower_bid
from adloom.serving.index.contextual import ContextualCreative
from adloom.serving.index.index import Candidate, Index, IndexedPlacement
from adloom.serving.index.site import IndexedSite
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX, TargetingBlock
from adloom.taxonomy.iab import load_content
from adloom.taxonomy.topics import FILLER, number_topic

SLOTS_MAX: Final = 8_192  # About 2 KB each; beyond that all are prepared again.
PAGES_CACHED_MAX: Final = 4_096


class PreparedCandidate(msgspec.Struct, frozen=True, gc=False):
    """A candidate that page, site and catalog allow in a slot."""

    place: int  # On the shortlist,
    number: int  # and among those that are ready.
    candidate: ShortlistCandidate
    creative: ContextualCreative
    own: IndexedPlacement
    offer: Candidate
    block: int
    bit: int
    targeting: TargetingBlock | None  # None: everybody.
    contender: PreparedContender
    payer: bytes
    charge: int  # Of its category, as a token has it; the amount is added.
    category: bytes  # As the answer has it, after the ad.


class RemovedCandidate(msgspec.Struct, frozen=True, gc=False):
    """A candidate that something keeps from a slot, as records need to know it."""

    pair: bytes  # Banner and campaign.
    bid: Micros
    reason: str
    floor: Micros = Micros(0)  # If the bid is under it.


class OpenSlot(msgspec.Struct, frozen=True, gc=False):
    """Which candidates of a slot schedules, caps and budgets allow; it holds until one of these changes."""

    ready: tuple[PreparedCandidate, ...]
    closed: tuple[tuple[PreparedCandidate, str], ...]  # With the names of what removes them.
    is_for_all: bool  # None of them targets visitors.
    leased: frozenset[int]  # Campaigns whose pace may leave them out.
    changes: int  # The change counter of placement states when this was found,
    inquiries: int  # and how often it had been asked which campaigns are wanted.
    since: datetime
    until: datetime


class PreparedShortlist(msgspec.Struct, gc=False):
    """Who may fill slots of a page; `reason` is what removed the last of the others.

    Slots with the same candidates and rules share it: what all slots of a page use fits into the processor's caches.
    """

    entry: PageEntry
    candidates: tuple[ShortlistCandidate, ...]
    rules: SlotRules
    campaigns: tuple[tuple[CampaignId, IndexedPlacement | None], ...]
    ready: tuple[PreparedCandidate, ...]
    removed: tuple[RemovedCandidate, ...]
    reason: str
    removed_at: int
    # What requests have found, as long as it holds: what those that are ready bid now, which of them are available, and
    # how they are drawn.
    bidding: Sequence[PreparedCandidate]
    open: OpenSlot | None = None
    results: SiteResults | None = None
    draws: Sequence[ReadyDraw] = ()
    requests: int = 0  # That its candidates do not know of yet.

    def holds_in(self, index: Index) -> bool:
        """Whether the catalog has the same campaigns still."""
        find = index.by_campaign.get
        return all(find(campaign_id) is own for campaign_id, own in self.campaigns)


class PreparedSlot(msgspec.Struct, gc=False):
    """A slot of a page, with its bytes of an answer and of a token."""

    index: Index
    slot: IndexedPlacement
    site: IndexedSite
    entry: PageEntry
    listed: ListedPage | None
    shortlist: PreparedShortlist
    placement: bytes
    head: bytes
    middle: bytes

    def holds_for(
        self,
        index: Index,
        slot: IndexedPlacement,
        site: IndexedSite,
        entry: PageEntry,
        listed: ListedPage | None,
    ) -> bool:
        """Whether nothing that it was made from was replaced."""
        if self.entry is not entry or self.listed is not listed:
            return False
        if self.index is index:
            return True
        if self.slot is not slot or self.site is not site or not self.shortlist.holds_in(index):
            return False
        self.index = index
        return True


class PreparedSlots:
    """The slots that were asked for."""

    def __init__(self) -> None:
        self._slots: dict[tuple[int, str], PreparedSlot] = {}
        self._last: dict[str, PreparedShortlist] = {}  # By page.

    def get(
        self,
        index: Index,
        slot: IndexedPlacement,
        site: IndexedSite,
        entry: PageEntry,
        listed: ListedPage | None,
    ) -> PreparedSlot:
        key = slot.key, entry.url
        known = self._slots.get(key)
        if known is not None and known.holds_for(index, slot, site, entry, listed):
            return known
        if len(self._slots) >= SLOTS_MAX:
            self._slots.clear()
            self._last.clear()
        last = self._last.get(entry.url)
        known = self._slots[key] = prepare_slot(index, slot, site, entry, listed, last)
        self._last[entry.url] = known.shortlist
        return known


def prepare_slot(  # noqa: PLR0913, PLR0917 - what a slot is made from
    index: Index,
    slot: IndexedPlacement,
    site: IndexedSite,
    entry: PageEntry,
    listed: ListedPage | None,
    last: PreparedShortlist | None = None,
) -> PreparedSlot:
    """Prepare a slot; whether page and shortlist have expired is for the request to see.

    If the `last` shortlist of the page has the same candidates and rules, it is taken.
    """
    rules, slug = build_rules(slot, site), slot.slug.decode()
    candidates = () if listed is None else listed.slots.get(slug, ())
    if (
        last is None
        or last.entry is not entry
        or last.candidates != candidates
        or last.rules != rules
        or not last.holds_in(index)
    ):
        last = _check_candidates(index, entry, candidates, rules)
    return PreparedSlot(
        index,
        slot,
        site,
        entry,
        listed,
        last,
        slot.id.bytes,
        b'{"slot":%b,' % msgspec.json.encode(slug),
        b'","version":%d,"servedAt":"' % (0 if listed is None else listed.version),
    )


def _check_candidates(
    index: Index, entry: PageEntry, candidates: tuple[ShortlistCandidate, ...], rules: SlotRules
) -> PreparedShortlist:
    page = add_ancestors(tuple(one.id for one in entry.categories))
    ready: list[PreparedCandidate] = []
    gone: list[RemovedCandidate] = []
    reason, removed_at = NO_DEMAND, -1
    for place, candidate in enumerate(candidates):
        own = index.by_campaign.get(candidate.campaign_id)
        creative = None if own is None else own.creatives_by_banner.get(candidate.banner_id)
        if own is None or creative is None:
            removed = CAMPAIGN_INACTIVE
        else:
            removed = find_removal(candidate, creative, page, rules)
            if removed is None:
                ready.append(_prepare(place, len(ready), candidate, creative, own, rules))
        if removed is not None:
            reason, removed_at = removed, place
            gone.append(_note_removed(candidate, creative, removed, rules))
    bidding = tuple(ready)
    return PreparedShortlist(
        entry,
        candidates,
        rules,
        tuple({one.campaign_id: index.by_campaign.get(one.campaign_id) for one in candidates}.items()),
        bidding,
        tuple(gone),
        reason,
        removed_at,
        bidding=bidding,
    )


def _note_removed(
    candidate: ShortlistCandidate, creative: ContextualCreative | None, reason: str, rules: SlotRules
) -> RemovedCandidate:
    return RemovedCandidate(
        candidate.banner_id.bytes + candidate.campaign_id.bytes,
        candidate.cpm if creative is None else creative.bid,
        reason,
        rules.find_floor(candidate) if reason == BELOW_FLOOR else Micros(0),
    )


def _prepare(  # noqa: PLR0913, PLR0917 - what a candidate is made from
    place: int,
    number: int,
    candidate: ShortlistCandidate,
    creative: ContextualCreative,
    own: IndexedPlacement,
    rules: SlotRules,
) -> PreparedCandidate:
    block_number, bit_place = divmod(creative.position, BLOCK_CANDIDATES_MAX)
    block = own.blocks[block_number]
    offer = block.candidates[bit_place]
    return PreparedCandidate(
        place,
        number,
        candidate,
        creative,
        own,
        offer,
        block_number,
        1 << bit_place,
        block.targeting if offer.rules else None,
        prepare_contender(creative.bid, candidate.category_score, bid_weight=rules.bid_weight),
        name_payer(candidate),
        *_prepare_category(candidate.category),
    )


def lower_bids(
    ready: Sequence[PreparedCandidate], rules: SlotRules, multipliers: Mapping[int, float]
) -> tuple[list[PreparedCandidate], list[int]]:
    """Return the candidates as they bid now, and the places of those that are under the floor so."""
    lowered: list[PreparedCandidate] = []
    under_floor: list[int] = []
    for one in ready:
        multiplier = multipliers.get(one.creative.campaign_key)
        if multiplier is None:
            lowered.append(one)
            continue
        bid = lower_bid(one.creative.bid, multiplier)
        contender = prepare_contender(bid, one.candidate.category_score, bid_weight=rules.bid_weight)
        creative = msgspec.structs.replace(one.creative, bid=bid)
        lowered.append(msgspec.structs.replace(one, creative=creative, contender=contender))
        if bid < rules.find_floor(one.candidate):
            under_floor.append(one.place)
    return lowered, under_floor


def build_rules(slot: IndexedPlacement, site: IndexedSite) -> SlotRules:
    """Return what a site asks of ads in a slot; the floor is the higher of both."""
    return SlotRules(
        domain=site.domain,
        width=slot.width,
        height=slot.height,
        floor=max(slot.floor, site.floor),
        floor_min=max(slot.floor, site.floor_min),
        is_sweeping=site.is_sweeping,
        accepts_filler=site.accepts_filler,
        blocked_products=site.blocked_products,
        blocked_domains=site.blocked_domains,
        approvals=site.approvals,
        bid_weight=site.bid_weight,
        is_first_price=site.is_first_price,
    )


@lru_cache(PAGES_CACHED_MAX)
def add_ancestors(category_ids: tuple[str, ...]) -> frozenset[str]:
    """Return categories and all above them."""
    taxonomy = load_content()
    return frozenset(node for one in category_ids for node in (one, *taxonomy.list_ancestors(one)))


@lru_cache(1_024)
def _prepare_category(category: str | None) -> tuple[int, bytes]:
    """Return what a token and an answer have of a category: the same objects for all that are sold under it."""
    member = b',"category":%b,"requestId":"' % encode_category(category)
    return build_charge(number_topic(category or FILLER)), member


@lru_cache(1_024)
def encode_category(category: str | None) -> bytes:
    """Encode a category for an answer, with its name."""
    if category is None:
        return b"null"
    return msgspec.json.encode({"id": category, "name": load_content().find_name(category)})
