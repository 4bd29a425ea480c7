"""Fills a contextual slot: who may, who is chosen, at what price, and the bytes of the answer.

Everything is read from what this process holds: the index, the pages, the shortlists and the leases. Nothing waits.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from adloom.auction.creative_choice import ChoicePolicy
from adloom.core.ids import OpaqueId, SiteId
from adloom.core.money import Micros, impression_cost
from adloom.core.random import Chance
from adloom.events.ingest.token import TokenSigner, pack_charge, pack_terms, void_charge
from adloom.events.log.event import ChargedBy
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.serving.contextual.decide import (
    BUDGET,
    CAMPAIGN_INACTIVE,
    FREQUENCY,
    ON_PAGE_ALREADY,
    PACING,
    TARGETING,
    Eligible,
    SlotRules,
    find_removal,
    price_winner,
    rank_eligible,
)
from adloom.serving.direct.encode import MillisecondStamp
from adloom.serving.eligibility.frequency_lookup import NO_BANNERS, BannerKeys
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.contextual import ContextualCreative
from adloom.serving.index.index import Candidate, Index, IndexedPlacement
from adloom.serving.index.site import IndexedSite
from adloom.serving.leases.reserve import Reserver
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX
from adloom.targeting.context import Context
from adloom.taxonomy.iab import content

NO_DEMAND: Final = "no_demand"
PAGES_CACHED_MAX: Final = 4_096

ReadResults = Callable[[SiteId, int], tuple[int, int]]


class SlotRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A slot to fill on a page, for a visitor."""

    index: Index
    slot: IndexedPlacement
    site: IndexedSite
    categories: frozenset[str]  # The page's, and all above them.
    candidates: Sequence[ShortlistCandidate]
    version: int
    context: Context
    now: datetime
    second: int
    seen: BannerKeys = NO_BANNERS
    user: bytes = b""  # Sealed, for the pixel.
    is_free: bool = False  # For a doubtful sender: it holds nothing, and nothing of it counts.


class FilledSlot(msgspec.Struct, frozen=True, gc=False):
    """An ad in a slot."""

    body: bytes
    campaign_key: int
    banner_key: int
    price: Micros


class SlotFiller:
    """Fills slots from the states and leases of this process."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        states: PlacementStates,
        reserver: Reserver,
        signer: TokenSigner,
        *,
        public_url: str,
        chance: Chance,
        read_results: ReadResults,
    ) -> None:
        self._states = states
        self._reserve = reserver.reserve
        self._sign = signer.sign
        self._chance = chance
        self._read_results = read_results
        self._stamp = MillisecondStamp()
        origin = msgspec.json.encode(public_url)[1:-1]
        self._impression = b'","impressionUrl":"%b/i/' % origin
        self._click = b'","clickUrl":"%b/c/' % origin
        self._rules: dict[tuple[int, int], tuple[IndexedPlacement, IndexedSite, SlotRules]] = {}

    def find_capped(
        self, index: Index, candidates: Sequence[ShortlistCandidate]
    ) -> tuple[IndexedPlacement, ...]:
        """Return the campaigns' creatives that have a frequency cap."""
        found = {one.campaign_id: index.by_campaign.get(one.campaign_id) for one in candidates}
        return tuple(own for own in found.values() if own is not None and own.has_frequency)

    def fill(
        self, request: SlotRequest, request_id: OpaqueId, number: int, on_page: Collection[int] = ()
    ) -> FilledSlot | str:
        """Fill a slot, or return the name of what removed its last candidate; `on_page` are campaigns and banners.

        A campaign's key is negative there, a banner's positive.
        """
        rules = self._find_rules(request.slot, request.site)
        eligible: list[Eligible] = []
        reason = NO_DEMAND
        for candidate in request.candidates:
            found = self.check(request, rules, candidate, on_page)
            if isinstance(found, str):
                reason = found
            else:
                eligible.append(found)
        return self._choose(request, rules, eligible, request_id, number) or (BUDGET if eligible else reason)

    def check(
        self,
        request: SlotRequest,
        rules: SlotRules,
        candidate: ShortlistCandidate,
        on_page: Collection[int] = (),
    ) -> Eligible | str:
        """Return a candidate that may fill the slot, or the name of what keeps it from that."""
        own = request.index.by_campaign.get(candidate.campaign_id)
        creative = None if own is None else own.creatives_by_banner.get(candidate.banner_id)
        if own is None or creative is None:
            return CAMPAIGN_INACTIVE
        reason = find_removal(candidate, creative, request.categories, rules)
        if reason is not None:
            return reason
        if on_page and (creative.banner_key in on_page or -creative.campaign_key in on_page):
            return ON_PAGE_ALREADY
        return self._find_exclusion(request, own, creative) or Eligible(candidate, creative)

    def _find_exclusion(
        self, request: SlotRequest, own: IndexedPlacement, creative: ContextualCreative
    ) -> str | None:
        """Return what keeps a creative from this visitor at this moment."""
        state = self._states.get(own, request.now)
        number, place = divmod(creative.position, BLOCK_CANDIDATES_MAX)
        bit = 1 << place
        if not state.available[number] & bit:
            excluded = self._states.find_reason(creative.campaign_key)
            return CAMPAIGN_INACTIVE if excluded is None else PACING if excluded == PACING else BUDGET
        if not own.blocks[number].targeting.find_eligible(request.context, bit):
            return TARGETING
        return FREQUENCY if creative.banner_key in request.seen else None

    def _choose(
        self,
        request: SlotRequest,
        rules: SlotRules,
        eligible: Sequence[Eligible],
        request_id: OpaqueId,
        number: int,
    ) -> FilledSlot | None:
        """Hold the price of the best, or else of the next best."""
        if not eligible:
            return None
        site_id = request.site.id
        ranked = rank_eligible(
            eligible,
            ChoicePolicy(bid_weight=rules.bid_weight),
            lambda banner_key: self._read_results(site_id, banner_key),
            self._chance,
        )
        for position, winner in enumerate(ranked):
            one = eligible[winner.position]
            price = price_winner(winner, ranked[position + 1 :], eligible, rules=rules)
            cost = impression_cost(price)
            candidate = _find_candidate(request.index, one)
            lease = 0 if request.is_free else self._reserve(candidate, cost, request.second)
            if lease is not None:
                body = self._encode(request, one, candidate, cost, lease, request_id, number)
                return FilledSlot(body, one.creative.campaign_key, one.creative.banner_key, price)
        return None

    def _encode(  # noqa: PLR0913, PLR0917 - all that an answer is made of
        self,
        request: SlotRequest,
        one: Eligible,
        candidate: Candidate,
        cost: Micros,
        lease: int,
        request_id: OpaqueId,
        number: int,
    ) -> bytes:
        terms = pack_terms(candidate.pair, request.slot.id.bytes, pack_charge(cost, ChargedBy.IMPRESSION))
        token = self._sign(
            void_charge(terms) if request.is_free else terms,
            request_id=request_id.bytes,
            issued_at=request.second,
            slot=number,
            lease=lease,
            micros=request.now.microsecond,
        )
        return b"".join(
            (
                b'{"slot":',
                msgspec.json.encode(request.slot.slug.decode()),
                b',"bannerId":"',
                str(one.creative.banner_id).encode(),
                b'","campaignId":"',
                str(one.candidate.campaign_id).encode(),
                b'",',
                one.creative.ad,
                b',"category":',
                _encode_category(one.candidate.category),
                b',"requestId":"',
                str(request_id).encode(),
                b'","version":',
                b"%d" % request.version,
                b',"servedAt":"',
                self._stamp.format(request.now, request.second),
                b'","trackingToken":"',
                token,
                self._impression,
                token,
                request.user,
                self._click,
                token,
                b'"}',
            )
        )

    def _find_rules(self, slot: IndexedPlacement, site: IndexedSite) -> SlotRules:
        known = self._rules.get((slot.key, site.key))
        if known is not None and known[0] is slot and known[1] is site:
            return known[2]
        if len(self._rules) >= PAGES_CACHED_MAX:
            self._rules.clear()
        rules = build_rules(slot, site)
        self._rules[slot.key, site.key] = slot, site, rules
        return rules


def build_rules(slot: IndexedPlacement, site: IndexedSite) -> SlotRules:
    """Return what a site asks of ads in a slot; the floor is the higher of both."""
    return SlotRules(
        domain=site.domain,
        width=slot.width,
        height=slot.height,
        floor=max(slot.floor, site.floor),
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
    taxonomy = content()
    return frozenset(node for one in category_ids for node in (one, *taxonomy.ancestors(one)))


def _find_candidate(index: Index, one: Eligible) -> Candidate:
    number, place = divmod(one.creative.position, BLOCK_CANDIDATES_MAX)
    return index.by_campaign[one.candidate.campaign_id].blocks[number].candidates[place]


@lru_cache(1_024)
def _encode_category(category: str | None) -> bytes:
    if category is None:
        return b"null"
    node = content().find(category)
    return msgspec.json.encode({"id": category, "name": category if node is None else node.name})
