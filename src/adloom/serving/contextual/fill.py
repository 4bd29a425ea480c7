"""Fills a contextual slot: who may, who is chosen, at what price, and the bytes of the answer.

Everything is read from what this process holds: the index, the pages, the shortlists and the leases. Nothing waits.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from adloom.auction.beta_draws import draw_weighted
from adloom.auction.creative_choice import ChoiceMethod, ChoicePolicy, DrawnScores, prepare_draws
from adloom.core.ids import SiteId
from adloom.core.money import Micros, impression_cost
from adloom.core.random import Chance
from adloom.events.ingest.token import VOID_CHARGE, TokenSigner
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
    draw_eligible,
    price_winner,
)
from adloom.serving.contextual.prepare import OpenSlot, PreparedCandidate, PreparedSlot, lower_bids
from adloom.serving.contextual.record import SlotRecord
from adloom.serving.contextual.visit import SlotVisit
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.leases.reserve import Reserver

NEVER: Final = datetime.min.replace(tzinfo=UTC)
FOREVER: Final = datetime.max.replace(tzinfo=UTC)

TOKEN: Final = b'"trackingToken":"'

ReadResults = Callable[[SiteId], SiteResults]


class FilledSlot(msgspec.Struct, frozen=True, gc=False):
    """An ad in a slot."""

    body: bytes
    winner: PreparedCandidate
    price: Micros
    lease: int

    @property
    def tail(self) -> bytes:
        """The end of the body: token and addresses, without the last brace."""
        return self.body[self.body.rindex(TOKEN) : -1]


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
        self._change_counter = states.change_counter
        self._reserve = reserver.reserve
        self._is_left_out = reserver.is_left_out
        self._paced = reserver.paced
        self._sign = signer.sign_masked
        self._chance = chance
        self._read_results = read_results
        self.method = method
        origin = msgspec.json.encode(public_url)[1:-1]
        self._token = b'",' + TOKEN
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
        known, now = prepared.open, visit.now
        if (
            known is None
            or known.changes != self._change_counter.count
            or known.inquiries != self._states.inquiries
            or not known.since <= now < known.until
        ):
            known = prepared.open = self._open(prepared, now)
        prepared.requests += 1
        eligible: Sequence[PreparedCandidate] = known.ready
        if not known.is_for_all or visit.seen:
            eligible = [
                one for one in eligible if _find_exclusion(one, visit, prepared.slot, on_page) is None
            ]
        elif on_page and not known.keys.isdisjoint(on_page):
            eligible = [one for one in eligible if one.keys.isdisjoint(on_page)]
        paced: Sequence[PreparedCandidate] = ()
        if self._paced and not (visit.is_free or known.leased.isdisjoint(self._paced)):
            eligible, paced = self._leave_out(eligible)
        filled = self._choose(prepared, visit, eligible, number, record) if eligible else None
        if record is not None:
            for one, reason in _list_removed(known, visit, prepared.slot, on_page, paced):
                record.remove(one, reason, prepared.rules.find_floor(one.candidate))
        if filled is not None:
            return filled
        return BUDGET if eligible else _name_reason(prepared, known, visit, on_page)

    def _open(self, prepared: PreparedSlot, now: datetime) -> OpenSlot:
        """Look at the states of all candidates, and what they bid now; that also says that they are wanted."""
        ready: list[PreparedCandidate] = []
        closed: list[tuple[PreparedCandidate, str]] = []
        since, until = NEVER, FOREVER
        requests, prepared.requests = prepared.requests, 0
        under_floor: Collection[int] = ()
        if prepared.bidding is not prepared.ready or self._multipliers:
            prepared.bidding, under_floor = lower_bids(prepared.ready, prepared.rules, self._multipliers)
            prepared.results = None  # Other bids have other draws.
        for one in prepared.bidding:
            state = self._states.get(one.own, now)
            state.requests += requests
            if state.site_key != prepared.slot.site_key:
                state.note_site(prepared.slot.site_key)
            since, until = max(since, state.since), min(until, state.until)
            if state.available[one.block] & one.bit:
                if one.place in under_floor:
                    closed.append((one, BELOW_FLOOR))
                else:
                    ready.append(one)
                continue
            excluded = self._states.find_reason(one.creative.campaign_key)
            reason = CAMPAIGN_INACTIVE if excluded is None else PACING if excluded == PACING else BUDGET
            closed.append((one, reason))
        return OpenSlot(
            tuple(ready),
            tuple(closed),
            all(one.targeting is None for one in ready),
            frozenset(key for one in ready for key in one.keys),
            frozenset(one.offer.campaign_key for one in ready if one.offer.is_leased),
            self._change_counter.count,
            self._states.inquiries,
            since,
            until,
        )

    def _leave_out(
        self, eligible: Sequence[PreparedCandidate]
    ) -> tuple[Sequence[PreparedCandidate], Sequence[PreparedCandidate]]:
        """Draw whom the pace of campaigns leaves out of this request; return the others, and those."""
        is_left_out, keys = self._is_left_out, self._paced
        paced = [
            one
            for one in eligible
            if one.offer.is_leased and one.offer.campaign_key in keys and is_left_out(one.offer.campaign_key)
        ]
        numbers = {one.number for one in paced}
        return [one for one in eligible if one.number not in numbers], paced

    def _choose(
        self,
        prepared: PreparedSlot,
        visit: SlotVisit,
        eligible: Sequence[PreparedCandidate],
        number: int,
        record: SlotRecord | None,
    ) -> FilledSlot | None:
        """Hold the price of the best, or else of the next best."""
        drawn = self._draw(prepared, visit, eligible)
        order, left = drawn.order, drawn.scores.copy()
        filled = None
        tried = 0
        while tried < len(left):
            position = left.index(max(left)) if order is None else order[tried]
            left[position] = -1.0
            one = eligible[position]
            price = price_winner(position, drawn, eligible, prepared.rules, left)
            cost = impression_cost(price)
            lease = 0 if visit.is_free else self._reserve(one.offer, cost, visit.second, True)  # noqa: FBT003 - as it is drawn
            if lease is not None:
                body = self._encode(prepared, visit, one, cost, lease, number)
                filled = FilledSlot(body, one, price, lease)
                break
            tried += 1
        if record is not None:
            record.ranked = [(eligible[place], drawn.engagements[place]) for place in drawn.iter_best()]
            record.unreserved, record.price = tried, None if filled is None else filled.price
        return filled

    def _draw(
        self, prepared: PreparedSlot, visit: SlotVisit, eligible: Sequence[PreparedCandidate]
    ) -> DrawnScores:
        results = visit.results
        if results is None:
            results = visit.results = self._read_results(prepared.site.id)
        if prepared.results is results:
            draws = prepared.draws
        else:
            policy = ChoicePolicy(
                bid_weight=prepared.rules.bid_weight, method=self.method, click_rate=results.click_rate
            )
            if self.method is not ChoiceMethod.INFORMED:
                return draw_eligible(eligible, policy, results.banners, self._chance)
            counts = [results.banners.get(one.creative.banner_key, NOT_SHOWN) for one in prepared.bidding]
            draws = prepare_draws([one.contender for one in prepared.bidding], counts, policy)
            prepared.results, prepared.draws = results, draws
        if len(eligible) != len(draws):
            draws = [draws[one.number] for one in eligible]
        return DrawnScores(*draw_weighted(draws, self._chance.random))

    def _encode(  # noqa: PLR0913, PLR0917 - all that an answer is made of
        self,
        prepared: PreparedSlot,
        visit: SlotVisit,
        one: PreparedCandidate,
        cost: Micros,
        lease: int,
        number: int,
    ) -> bytes:
        token = self._sign(
            VOID_CHARGE if visit.is_free else one.charge | cost,
            one.ids,
            visit.request_id,
            visit.second,
            number,
            lease,
            visit.now.microsecond,
        )
        return b"".join(
            (
                one.head,
                visit.request_text,
                prepared.middle,
                visit.served_at,
                self._token,
                token,
                self._impression,
                token,
                visit.user,
                self._click,
                token,
                b'"}',
            )
        )


def _find_exclusion(
    one: PreparedCandidate, visit: SlotVisit, slot: IndexedPlacement, on_page: Collection[int]
) -> str | None:
    """Return what keeps a candidate from this visitor; its pace is drawn for those that are left."""
    creative = one.creative
    if on_page and (creative.banner_key in on_page or -creative.campaign_key in on_page):
        return ON_PAGE_ALREADY
    if one.targeting is not None and not one.targeting.find_eligible(visit.parse_context(slot.zone), one.bit):
        return TARGETING
    return FREQUENCY if visit.seen and creative.banner_key in visit.seen else None


def _list_removed(
    known: OpenSlot,
    visit: SlotVisit,
    slot: IndexedPlacement,
    on_page: Collection[int],
    paced: Sequence[PreparedCandidate],
) -> list[tuple[PreparedCandidate, str]]:
    """Return the candidates that do not fill a slot for this visitor at this moment, each with what removes it."""
    removed = list(known.closed)
    named = [(one, _find_exclusion(one, visit, slot, on_page)) for one in known.ready]
    removed += [(one, reason) for one, reason in named if reason is not None]
    return removed + [(one, PACING) for one in paced]


def _name_reason(prepared: PreparedSlot, known: OpenSlot, visit: SlotVisit, on_page: Collection[int]) -> str:
    """Return what removed the last of a shortlist's candidates, where none is left."""
    reason, removed_at = prepared.reason, prepared.removed_at
    if known.closed and known.closed[-1][0].place > removed_at:
        last, reason = known.closed[-1]
        removed_at = last.place
    if known.ready and known.ready[-1].place > removed_at:
        # If nothing excludes it, its pace has left it out.
        reason = _find_exclusion(known.ready[-1], visit, prepared.slot, on_page) or PACING
    return reason
