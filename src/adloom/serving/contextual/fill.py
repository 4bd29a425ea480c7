"""Fills a contextual slot: which ads may, which is chosen, at what price, and the bytes of the answer.

Everything is read from what this process holds: the index, the pages, the shortlists and the leases. Nothing waits.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from adloom.auction.beta_draws import ReadyDraw, draw_weighted
from adloom.auction.creative_choice import ChoiceMethod, ChoicePolicy, DrawnScores, prepare_draws
from adloom.core.ids import SiteId
from adloom.core.money import Micros, price_impression
from adloom.core.random import Chance
from adloom.events.ingest.token import VOID_CHARGE, TokenSigner
from adloom.market.results.window import SiteResults
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.serving.auction.decide import OFFER_COST_MIN
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
from adloom.serving.contextual.prepare import (
    OpenSlot,
    PreparedCandidate,
    PreparedShortlist,
    PreparedSlot,
    lower_bids,
)
from adloom.serving.contextual.record import SlotRecord
from adloom.serving.contextual.visit import SlotVisit
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.leases.reserve import Reserver

NEVER: Final = datetime.min.replace(tzinfo=UTC)
FOREVER: Final = datetime.max.replace(tzinfo=UTC)

TOKEN: Final = b'"trackingToken":"'
TOKEN_PLACE: Final = 7  # Among the parts of an answer.
END: Final = b'"}'
_FREE: Final = Micros(0)

ReadResults = Callable[[SiteId], SiteResults]
ExcludedCandidate = tuple[PreparedCandidate, str]  # With the name of what removes it.


class FilledSlot(msgspec.Struct, frozen=True, gc=False):
    """An ad in a slot; its parts are those of its answer, which a batch joins with others."""

    parts: tuple[bytes, ...]
    winner: PreparedCandidate
    price: Micros
    cost: Micros
    lease: int

    @property
    def tail(self) -> bytes:
        """The end of the answer: token and addresses, without the last brace."""
        return b"".join((TOKEN, *self.parts[TOKEN_PLACE:-1], END[:-1]))


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
        self._make_gate = reserver.make_gate
        self._unheld = reserver.without_holds()
        self._paced = reserver.paced
        self._sign = signer.sign_masked
        self._chance = chance
        self._random = chance.random
        self._read_results = read_results
        self.method = method
        self._is_informed = method is ChoiceMethod.INFORMED
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

    def fill_all(  # noqa: C901, PLR0912 - every request of a slot: calls would cost
        self,
        slots: Sequence[PreparedSlot],
        visit: SlotVisit,
        numbers: Sequence[int],
        on_page: set[int],
        records: Sequence[SlotRecord | None] | None = None,
    ) -> list[FilledSlot | str]:
        """Fill slots of a page; one that stays empty gets the reason why its last candidate was removed.

        `on_page` has the campaigns and banners that are on the page already, and those of each slot are added. A
        campaign's key is negative there, a banner's positive.
        """
        filled: list[FilledSlot | str] = []
        changes = self._change_counter
        known = last = used_up = record = None
        reason = ""
        for slot in slots:
            if records is not None:
                record = records[len(filled)]
            shortlist = slot.shortlist
            if shortlist is not last:
                last, known = shortlist, shortlist.open
                if known is not None and (
                    known.inquiries != self._states.inquiries or not known.since <= visit.now < known.until
                ):
                    known = None
            elif shortlist is used_up and record is None:  # The page has all of its candidates.
                shortlist.requests += 1
                filled.append(reason)
                continue
            if known is None or known.changes != changes.count:
                known = shortlist.open = self._open(shortlist, slot.slot, visit.now)
            shortlist.requests += 1
            eligible: Sequence[PreparedCandidate] = known.ready
            if not known.is_for_all or visit.seen:
                eligible = [
                    one for one in eligible if _find_exclusion(one, visit, slot.slot, on_page) is None
                ]
            elif on_page:
                eligible = [one for one in eligible if one.creative.keys.isdisjoint(on_page)]
                if not eligible:
                    used_up = shortlist
            left_out: Sequence[ExcludedCandidate] = ()
            if visit.is_unheld or (
                self._paced and not (visit.is_free or known.leased.isdisjoint(self._paced))
            ):
                eligible, left_out = self._leave_out(eligible, visit)
            # An index costs less than iterating over several at once.
            one = self._choose(slot, visit, eligible, numbers[len(filled)], record) if eligible else None
            if record is not None:
                for gone, why in _list_removed(known, visit, slot.slot, on_page, left_out):
                    record.remove(gone, why, shortlist.rules.find_floor(gone.candidate))
            if one is None:
                reason = BUDGET if eligible else _name_reason(slot, known, visit, on_page, left_out)
                filled.append(reason)
            else:
                on_page |= one.winner.creative.keys
                filled.append(one)
        return filled

    def fill(self, slot: PreparedSlot, visit: SlotVisit) -> FilledSlot | str:
        """Fill the only slot of a request."""
        return self.fill_all((slot,), visit, (0,), set())[0]

    def _open(self, shortlist: PreparedShortlist, slot: IndexedPlacement, now: datetime) -> OpenSlot:
        """Look at the states of all candidates, and what they bid now; that also says that they are wanted."""
        ready: list[PreparedCandidate] = []
        closed: list[tuple[PreparedCandidate, str]] = []
        since, until = NEVER, FOREVER
        requests, shortlist.requests = shortlist.requests, 0
        under_floor: Collection[int] = ()
        if shortlist.bidding is not shortlist.ready or self._multipliers:
            shortlist.bidding, under_floor = lower_bids(shortlist.ready, shortlist.rules, self._multipliers)
            shortlist.results = None  # Other bids have other draws.
        for one in shortlist.bidding:
            state = self._states.get(one.own, now)
            state.requests += requests
            if state.site_key != slot.site_key:
                state.note_site(slot.site_key)
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
            frozenset(one.offer.campaign_key for one in ready if one.offer.is_leased),
            self._change_counter.count,
            self._states.inquiries,
            since,
            until,
        )

    def _leave_out(
        self, eligible: Sequence[PreparedCandidate], visit: SlotVisit
    ) -> tuple[Sequence[PreparedCandidate], Sequence[ExcludedCandidate]]:
        """Leave out what campaigns do not offer here: they neither win, nor set the price of another.

        That is by their pace, drawn once for each campaign, or by a cap, where the sender's offers are not reserved.
        """
        unheld = self._unheld if visit.is_unheld else None
        gate = self._make_gate() if unheld is None else unheld.make_gate()
        left_out: list[ExcludedCandidate] = []
        for one in eligible:
            if not one.offer.is_leased:
                continue
            if unheld is not None and unheld.reserve(one.offer, 0, visit.second, is_drawn=True) is None:
                left_out.append((one, BUDGET))
            elif one.offer.campaign_key in self._paced and one.offer.campaign_key in gate:
                left_out.append((one, PACING))
        numbers = {one.number for one, _ in left_out}
        return [one for one in eligible if one.number not in numbers], left_out

    def _choose(
        self,
        prepared: PreparedSlot,
        visit: SlotVisit,
        eligible: Sequence[PreparedCandidate],
        number: int,
        record: SlotRecord | None,
    ) -> FilledSlot | None:
        """Hold the price of the best, or else of the next best."""
        rules = prepared.shortlist.rules
        if record is None and len(eligible) == 1:  # Whatever is drawn, it wins, and no bid raises its price.
            one = eligible[0]
            price = one.creative.bid if rules.is_first_price else rules.find_floor(one.candidate)
            return self._offer(prepared, visit, one, price, number)
        results = visit.results
        if results is None:
            results = visit.results = self._read_results(prepared.site.id)
        order: Sequence[int] | None = None
        if self._is_informed:
            shortlist = prepared.shortlist
            draws = shortlist.draws if shortlist.results is results else _prepare_draws(shortlist, results)
            if len(eligible) != len(draws):
                draws = [draws[one.number] for one in eligible]
            scores = draw_weighted(draws, self._random)
        else:
            policy = ChoicePolicy(
                bid_weight=rules.bid_weight, method=self.method, click_rate=results.click_rate
            )
            drawn = draw_eligible(eligible, policy, results.banners, self._chance)
            order, scores = drawn.order, drawn.scores
        left = scores.copy()
        filled = None
        tried = 0
        while tried < len(left):
            position = left.index(max(left)) if order is None else order[tried]
            left[position] = -1.0
            price = price_winner(position, scores, eligible, rules, left)
            filled = self._offer(prepared, visit, eligible[position], price, number)
            if filled is not None:
                break
            tried += 1
        if record is not None:
            drawn = DrawnScores(
                [score / one.contender.weighted_bid for one, score in zip(eligible, scores, strict=True)],
                scores,
                order,
            )
            record.ranked = [(eligible[place], drawn.engagements[place]) for place in drawn.iter_best()]
            record.unreserved, record.price = tried, None if filled is None else filled.price
        return filled

    def _offer(
        self, prepared: PreparedSlot, visit: SlotVisit, one: PreparedCandidate, price: Micros, number: int
    ) -> FilledSlot | None:
        """Offer an ad at a price for a thousand impressions; None if that cannot be held."""
        creative, charge, lease, cost = one.creative, VOID_CHARGE, 0, _FREE
        if not visit.is_free:
            # A floor may be nothing, and a price that rounds to it too: no offer is made for nothing.
            cost = price_impression(price) or OFFER_COST_MIN
            reserve = self._unheld.reserve if visit.is_unheld else self._reserve
            held = reserve(one.offer, cost, visit.second, True)  # noqa: FBT003 - as it is drawn
            if held is None:
                return None
            charge, lease = one.charge | cost, held
        token = self._sign(
            charge,
            creative.banner + prepared.placement + creative.campaign,
            visit.request_id,
            visit.second,
            number,
            lease,
            visit.now.microsecond,
        )
        parts = (
            prepared.head,
            creative.ad,
            one.category,
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
            END,
        )
        return FilledSlot(parts, one, price, cost, lease)


def _prepare_draws(shortlist: PreparedShortlist, results: SiteResults) -> Sequence[ReadyDraw]:
    """Prepare the draws of all that bid now, by what is known of them on the site."""
    policy = ChoicePolicy(bid_weight=shortlist.rules.bid_weight, click_rate=results.click_rate)
    counts = [results.banners.get(one.creative.banner_key, NOT_SHOWN) for one in shortlist.bidding]
    shortlist.draws = prepare_draws([one.contender for one in shortlist.bidding], counts, policy)
    shortlist.results = results
    return shortlist.draws


def _find_exclusion(
    one: PreparedCandidate, visit: SlotVisit, slot: IndexedPlacement, on_page: Collection[int]
) -> str | None:
    """Return what keeps a candidate from this visitor; what campaigns leave out is asked of those that are left."""
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
    left_out: Sequence[ExcludedCandidate],
) -> list[ExcludedCandidate]:
    """Return the candidates that do not fill a slot for this visitor at this moment, each with what removes it."""
    removed = list(known.closed)
    named = [(one, _find_exclusion(one, visit, slot, on_page)) for one in known.ready]
    removed += [(one, reason) for one, reason in named if reason is not None]
    return [*removed, *left_out]


def _name_reason(
    prepared: PreparedSlot,
    known: OpenSlot,
    visit: SlotVisit,
    on_page: Collection[int],
    left_out: Sequence[ExcludedCandidate],
) -> str:
    """Return what removed the last of a shortlist's candidates, where none is left."""
    reason, removed_at = prepared.shortlist.reason, prepared.shortlist.removed_at
    if known.closed and known.closed[-1][0].place > removed_at:
        last, reason = known.closed[-1]
        removed_at = last.place
    if known.ready and known.ready[-1].place > removed_at:
        # If nothing excludes it, it is the last that was left out.
        reason = _find_exclusion(known.ready[-1], visit, prepared.slot, on_page) or left_out[-1][1]
    return reason
