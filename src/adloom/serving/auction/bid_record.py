"""Records the bids of an auction as the event log keeps them, and names the step that removed each of the others."""

# pure

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.auction.bid import BidType, Ctr
from adloom.auction.price import compute_ecpm
from adloom.auction.score import Scorer
from adloom.core.money import Micros
from adloom.events.log.auction_bids import BID_BYTES, BIDS_MAX, LOST, REMOVED, WON, pack_bid
from adloom.events.log.event import BidsUnderFloor, RemovedCandidates
from adloom.schedule.schedule_window import find_closed_reason
from adloom.serving.auction.decide import NO_KEYS
from adloom.serving.auction.funnel import (
    AuctionFunnel,
    StepMasks,
    build_funnel,
    compute_step_masks,
    iter_positions,
)
from adloom.serving.auction.scan_plan import ScanPlan
from adloom.serving.index.bid_block import Bidder, lower_bidder
from adloom.targeting.context import Context
from adloom.targeting.evaluate import find_failing

CAMPAIGN_DATES: Final = "campaign_dates"
TARGETING: Final = "targeting"
SCHEDULE: Final = "schedule"
LIMITS: Final = "caps_and_budgets"  # Of the campaign, where it is not known which.
NOT_HELD: Final = "not_held"
PACING: Final = "pacing"
FREQUENCY_CAP: Final = "frequency_cap"
FREQUENCY_UNKNOWN: Final = (
    "frequency_unknown"  # It is unknown how often it was seen, and the operator withholds it.
)
FLOOR: Final = "floor"

FindExclusion = Callable[[int], str | None]


def find_removal(  # noqa: PLR0913 - all that can remove a bidder
    bidder: Bidder,
    context: Context,
    *,
    now: datetime,
    find_exclusion: FindExclusion,
    seen_enough: Collection[int],
    unreserved: Collection[int],
    paced: Collection[int] = NO_KEYS,
    is_unknown: bool = False,
) -> str:
    """Return the first step that removes a bidder: dates, rules, schedule, limits, frequency, floor."""
    timing = bidder.timing
    if timing is not None and (
        (timing.starts_at is not None and now < timing.starts_at)
        or (timing.ends_at is not None and timing.ends_at <= now)
    ):
        return CAMPAIGN_DATES
    rule = find_failing(bidder.rules, context)
    if rule is not None:
        return f"{TARGETING}:{rule.rule_type}"
    closed = None if timing is None else find_closed_reason(timing.schedule, now=now)
    if closed is not None:
        return f"{SCHEDULE}:{closed}"
    excluded = find_exclusion(bidder.campaign_key)
    if excluded is not None:
        return excluded
    if bidder.campaign_key in unreserved:
        return PACING if bidder.campaign_key in paced else NOT_HELD
    return name_frequency_step(is_unknown=is_unknown) if bidder.banner_key in seen_enough else FLOOR


def name_frequency_step(*, is_unknown: bool) -> str:
    return FREQUENCY_UNKNOWN if is_unknown else FREQUENCY_CAP


_WON: Final = bytes((WON,))
# An explanation names parts of these steps.
_IN_PARTS: Final = frozenset({SCHEDULE, LIMITS, TARGETING})


class BidRecord(msgspec.Struct, frozen=True, gc=False):
    """All bids, the highest first; none of them is marked as the winner yet."""

    bids: bytes
    bid_count: int
    removed: tuple[RemovedCandidates, ...]
    examined_count: int  # Candidates that were examined for it; 0 if it comes from the cache.
    floors: tuple[BidsUnderFloor, ...] = ()  # Of the bids that were under theirs.

    def mark_winner(self) -> bytes:
        """Return the bids with the highest marked as the winner."""
        return self.bids[: BID_BYTES - 1] + _WON + self.bids[BID_BYTES:] if self.bid_count else self.bids


class AuctionInput(msgspec.Struct, frozen=True, gc=False):
    """What an auction is decided from, besides the eligible sets."""

    plan: ScanPlan
    contexts: tuple[Context, ...]
    scorers: Sequence[Scorer]
    seen_enough: frozenset[int] = NO_KEYS
    unreserved: frozenset[int] = NO_KEYS
    paced: frozenset[int] = NO_KEYS  # Those of them that their pace leaves out.
    is_unknown: bool = False  # It is unknown how often those in `seen_enough` were seen.


class BidRecorder:
    """Records auctions; `find_exclusion` returns why a campaign is excluded."""

    def __init__(self, find_exclusion: FindExclusion) -> None:
        self._find_exclusion = find_exclusion

    def record(self, auction_input: AuctionInput, now: datetime) -> BidRecord:
        """Call it before the winner is reserved, which may exclude its campaign."""
        funnel = build_funnel(
            auction_input.plan,
            auction_input.contexts,
            auction_input.scorers,
            seen_enough=auction_input.seen_enough,
            unreserved=auction_input.unreserved,
            bids_max=BIDS_MAX,
        )
        listing = _BidList(
            [_pack(one, ctr, -rank, LOST) for rank, one, ctr in funnel.bids],
            _count_removed(funnel, auction_input),
        )
        examined = funnel.bid_count + sum(listing.unlisted.values())
        if examined <= BIDS_MAX:
            listing.unlisted.clear()
            self._list_all(auction_input, funnel, listing, now)
        elif funnel.bid_count < BIDS_MAX:
            self._fill(auction_input, funnel, listing, now)
        return BidRecord(
            b"".join(listing.bids), funnel.bid_count, listing.list_removed(), examined, listing.list_floors()
        )

    def _list_all(
        self, auction_input: AuctionInput, funnel: AuctionFunnel, listing: "_BidList", now: datetime
    ) -> None:
        """List also all that were removed: there is space for them."""
        took_part = {one.seniority for _, one, _ in funnel.bids}
        for scan_step in auction_input.plan.steps:
            scorer = auction_input.scorers[scan_step.scorer_index]
            context = auction_input.contexts[scan_step.context_index]
            for position, one in enumerate(scan_step.block.bidders):
                if scan_step.members >> position & 1 and one.seniority not in took_part:
                    reason = self._find_reason(one, auction_input, context, now)
                    bidder = lower_bidder(one, scan_step.eligible_set.multipliers)
                    listing.add(bidder, scorer.predict_ctr(one), reason)

    def _fill(
        self, auction_input: AuctionInput, funnel: AuctionFunnel, listing: "_BidList", now: datetime
    ) -> None:
        """List some that were removed, in the order of the plan, as far as there is space."""
        took_part = {one.seniority for _, one, _ in funnel.bids}
        for number, scan_step in enumerate(auction_input.plan.steps):
            scorer = auction_input.scorers[scan_step.scorer_index]
            context = auction_input.contexts[scan_step.context_index]
            left = compute_step_masks(
                scan_step, context, seen_enough=auction_input.seen_enough, unreserved=auction_input.unreserved
            )
            # With a uniform CTR every bid that can reach the floor took part; else each is checked.
            can_bid = left.unseen & auction_input.plan.mask_over_floor(number, scorer.ctr_max)
            examined = scan_step.members & ~can_bid if scorer.is_uniform else scan_step.members
            for position in iter_positions(examined):
                one = scan_step.block.bidders[position]
                if not scorer.is_uniform and one.seniority in took_part:
                    continue
                step = _find_step(position, left, auction_input)
                listing.unlisted[step] -= 1
                reason = self._find_reason(one, auction_input, context, now) if step in _IN_PARTS else step
                bidder = lower_bidder(one, scan_step.eligible_set.multipliers)
                listing.add(bidder, scorer.predict_ctr(one), reason)
                if len(listing.bids) == BIDS_MAX:
                    return

    def _find_reason(self, one: Bidder, auction_input: AuctionInput, context: Context, now: datetime) -> str:
        return find_removal(
            one,
            context,
            now=now,
            find_exclusion=self._find_exclusion,
            seen_enough=auction_input.seen_enough,
            unreserved=auction_input.unreserved,
            paced=auction_input.paced,
            is_unknown=auction_input.is_unknown,
        )


class _BidList:
    """Bids one by one; those that are not listed are counted by the step that removed them."""

    def __init__(self, bids: list[bytes], unlisted: dict[str, int]) -> None:
        self.bids = bids
        self.unlisted = unlisted
        self._listed: dict[str, int] = {}
        self._under: dict[Micros, bytearray] = {}

    def add(self, one: Bidder, ctr: Ctr, reason: str) -> None:
        self._listed[reason] = self._listed.get(reason, 0) + 1
        if reason == FLOOR:
            self._under.setdefault(one.floor, bytearray()).append(len(self.bids))
        outcome = REMOVED + list(self._listed).index(reason)
        self.bids.append(_pack(one, ctr, compute_ecpm(one.bid_type, one.worth, ctr), outcome))

    def list_removed(self) -> tuple[RemovedCandidates, ...]:
        """Count all; reasons of listed bids come first, since their outcomes refer to them by position."""
        counts = self._listed
        for step, count in self.unlisted.items():
            if count:
                counts[step] = counts.get(step, 0) + count
        return tuple(RemovedCandidates(reason, count) for reason, count in counts.items())

    def list_floors(self) -> tuple[BidsUnderFloor, ...]:
        return tuple(BidsUnderFloor(floor, bytes(places)) for floor, places in self._under.items())


def _pack(one: Bidder, ctr: Ctr, ecpm: int, outcome: int) -> bytes:
    return pack_bid(one.pair, one.bid, one.quality, one.bid_type is BidType.CPC, ctr, ecpm, outcome)


def _count_removed(funnel: AuctionFunnel, auction_input: AuctionInput) -> dict[str, int]:
    return {
        SCHEDULE: funnel.not_in_time,
        LIMITS: funnel.excluded,
        TARGETING: funnel.not_targeted,
        name_frequency_step(is_unknown=auction_input.is_unknown): funnel.seen_enough,
        FLOOR: funnel.under_floor,
    }


def _find_step(position: int, left: StepMasks, auction_input: AuctionInput) -> str:
    """Name the step as `_count_removed` does."""
    one = 1 << position
    if not left.available & one:
        return LIMITS if left.in_time & one else SCHEDULE
    if not left.targeted & one:
        return TARGETING
    if left.unseen & one:
        return FLOOR
    return name_frequency_step(is_unknown=auction_input.is_unknown)
