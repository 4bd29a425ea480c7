"""Fills a contextual slot: who may, who is chosen, at what price, and the bytes of the answer.

Everything is read from what this process holds: the index, the pages, the shortlists and the leases. Nothing waits.
"""

from collections.abc import Callable, Collection, Sequence

import msgspec

from adloom.auction.creative_choice import ChoiceMethod, ChoicePolicy, ScoredContender, rank_prepared
from adloom.core.ids import SiteId
from adloom.core.money import Micros, impression_cost
from adloom.core.random import Chance
from adloom.events.ingest.token import TokenSigner, pack_charge, void_charge
from adloom.events.log.event import ChargedBy
from adloom.market.results.window import SiteResults
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.serving.contextual.decide import (
    BELOW_FLOOR,
    BUDGET,
    CAMPAIGN_INACTIVE,
    FREQUENCY,
    NOT_SHOWN,
    ON_PAGE_ALREADY,
    PACING,
    TARGETING,
    price_winner,
    rank_eligible,
)
from adloom.serving.contextual.prepare import PreparedCandidate, PreparedSlot, lower_bids
from adloom.serving.contextual.record import SlotRecord
from adloom.serving.contextual.visit import SlotVisit
from adloom.serving.direct.encode import MillisecondStamp
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.leases.reserve import Reserver

ReadResults = Callable[[SiteId], SiteResults]


class FilledSlot(msgspec.Struct, frozen=True, gc=False):
    """An ad in a slot."""

    body: bytes
    winner: PreparedCandidate
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
        method: ChoiceMethod = ChoiceMethod.INFORMED,
    ) -> None:
        self._states = states
        self._multipliers = states.multipliers
        self._reserve = reserver.reserve
        self._is_left_out = reserver.is_left_out
        self._sign = signer.sign
        self._chance = chance
        self._read_results = read_results
        self.method = method
        self._stamp = MillisecondStamp()
        origin = msgspec.json.encode(public_url)[1:-1]
        self._impression = b'","impressionUrl":"%b/i/' % origin
        self._click = b'","clickUrl":"%b/c/' % origin

    def find_capped(
        self, index: Index, candidates: Sequence[ShortlistCandidate]
    ) -> tuple[IndexedPlacement, ...]:
        """Return the campaigns' creatives that have a frequency cap."""
        found = {one.campaign_id: index.by_campaign.get(one.campaign_id) for one in candidates}
        return tuple(own for own in found.values() if own is not None and own.has_frequency)

    def fill(
        self,
        prepared: PreparedSlot,
        visit: SlotVisit,
        number: int = 0,
        on_page: Collection[int] = (),
        record: SlotRecord | None = None,
    ) -> FilledSlot | str:
        """Fill a slot, or return the name of what removed its last candidate; `on_page` are campaigns and banners.

        A campaign's key is negative there, a banner's positive.
        """
        eligible: list[PreparedCandidate] = []
        reason, removed_at = prepared.reason, prepared.removed_at
        ready: Sequence[PreparedCandidate] = prepared.ready
        under_floor: Collection[int] = ()
        if self._multipliers:
            ready, under_floor = lower_bids(ready, prepared.rules, self._multipliers)
        for one in ready:
            removed = self._find_exclusion(one, visit, prepared.slot, on_page)
            if removed is None and one.place in under_floor:
                removed = BELOW_FLOOR
            if removed is None:
                eligible.append(one)
                continue
            if record is not None:
                record.remove(one, removed, prepared.rules.find_floor(one.candidate))
            if one.place > removed_at:
                reason, removed_at = removed, one.place
        if not eligible:
            return reason
        return self._choose(prepared, visit, eligible, number, record) or BUDGET

    def _find_exclusion(
        self, one: PreparedCandidate, visit: SlotVisit, slot: IndexedPlacement, on_page: Collection[int]
    ) -> str | None:
        """Return what keeps a candidate from this visitor at this moment."""
        creative = one.creative
        if on_page and (creative.banner_key in on_page or -creative.campaign_key in on_page):
            return ON_PAGE_ALREADY
        state = self._states.get(one.own, visit.now)
        if not state.available[one.block] & one.bit:
            excluded = self._states.find_reason(creative.campaign_key)
            return CAMPAIGN_INACTIVE if excluded is None else PACING if excluded == PACING else BUDGET
        if one.targeting is not None and not one.targeting.find_eligible(
            visit.parse_context(slot.zone), one.bit
        ):
            return TARGETING
        if visit.seen and creative.banner_key in visit.seen:
            return FREQUENCY
        is_drawn = one.offer.is_leased and not visit.is_free
        return PACING if is_drawn and self._is_left_out(creative.campaign_key) else None

    def _choose(
        self,
        prepared: PreparedSlot,
        visit: SlotVisit,
        eligible: Sequence[PreparedCandidate],
        number: int,
        record: SlotRecord | None,
    ) -> FilledSlot | None:
        """Hold the price of the best, or else of the next best."""
        rules, ranked = prepared.rules, self._rank(prepared, eligible)
        if record is not None:
            record.ranked = [(eligible[one.position], one.engagement) for one in ranked]
        for position, winner in enumerate(ranked):
            one = eligible[winner.position]
            price = price_winner(winner, ranked[position + 1 :], eligible, rules=rules)
            cost = impression_cost(price)
            lease = 0 if visit.is_free else self._reserve(one.offer, cost, visit.second, is_drawn=True)
            if lease is not None:
                if record is not None:
                    record.unreserved, record.price = position, price
                return FilledSlot(self._encode(prepared, visit, one, cost, lease, number), one, price)
        if record is not None:
            record.unreserved = len(ranked)
        return None

    def _rank(self, prepared: PreparedSlot, eligible: Sequence[PreparedCandidate]) -> list[ScoredContender]:
        results = self._read_results(prepared.site.id)
        policy = ChoicePolicy(
            bid_weight=prepared.rules.bid_weight, method=self.method, click_rate=results.click_rate
        )
        if self.method is not ChoiceMethod.INFORMED:
            return rank_eligible(eligible, policy, results.banners, self._chance)
        find = results.banners.get
        return rank_prepared(
            [one.contender for one in eligible],
            [find(one.creative.banner_key, NOT_SHOWN) for one in eligible],
            policy,
            self._chance,
        )

    def _encode(  # noqa: PLR0913, PLR0917 - all that an answer is made of
        self,
        prepared: PreparedSlot,
        visit: SlotVisit,
        one: PreparedCandidate,
        cost: Micros,
        lease: int,
        number: int,
    ) -> bytes:
        terms = pack_charge(cost, ChargedBy.IMPRESSION, one.topic) + one.ids
        request_id = visit.request_id
        token = self._sign(
            void_charge(terms) if visit.is_free else terms,
            request_id.bytes,
            visit.second,
            number,
            lease,
            visit.now.microsecond,
        )
        return b"".join(
            (
                one.head,
                str(request_id).encode(),
                prepared.middle,
                self._stamp.format(visit.now, visit.second),
                b'","trackingToken":"',
                token,
                self._impression,
                token,
                visit.user,
                self._click,
                token,
                b'"}',
            )
        )
