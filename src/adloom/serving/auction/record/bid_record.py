"""Noting who took part in an auction, and who did not and why, as the ledger keeps it. Pure."""

# pure

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.auction.bid import BidType, Ctr
from adloom.auction.price import ecpm_of
from adloom.auction.score import Scorer
from adloom.core.money import Micros
from adloom.events.log.auction_bids import BID_BYTES, BIDS_MAX, LOST, REMOVED, WON, pack_bid
from adloom.events.log.event import BidsUnderFloor, RemovedCandidates
from adloom.serving.auction.bids.scan_plan import ScanPlan
from adloom.serving.auction.decide import NO_KEYS
from adloom.serving.auction.record import removal
from adloom.serving.auction.record.funnel import (
    AuctionFunnel,
    StepMasks,
    build_funnel,
    compute_step_masks,
    iter_positions,
)
from adloom.serving.index.bid_block import Bidder
from adloom.targeting.context import Context

_WON: Final = bytes((WON,))
# An explanation has more than one name for each of them.
_IN_PARTS: Final = frozenset({removal.SCHEDULE, removal.LIMITS, removal.TARGETING})


class BidRecord(msgspec.Struct, frozen=True, gc=False):
    """Who took part, the highest first; none of them is said to have won."""

    bids: bytes
    bid_count: int
    removed: tuple[RemovedCandidates, ...]
    examined_count: int  # How many candidates were, to make it; none where it is used again.
    floors: tuple[BidsUnderFloor, ...] = ()  # Of those in `bids` who were under theirs.

    def bids_with_winner(self) -> bytes:
        """Give the bids where the highest has won."""
        return self.bids[: BID_BYTES - 1] + _WON + self.bids[BID_BYTES:] if self.bid_count else self.bids


class AuctionInput(msgspec.Struct, frozen=True, gc=False):
    """A request, as an auction sees it."""

    plan: ScanPlan
    contexts: tuple[Context, ...]
    scorers: Sequence[Scorer]
    seen_enough: frozenset[int] = NO_KEYS
    without: frozenset[int] = NO_KEYS
    is_unknown: bool = False  # Nobody knows how often those in `seen_enough` were seen.


class BidRecorder:
    """Notes auctions; `reason_of` tells why a campaign is excluded."""

    def __init__(self, reason_of: removal.ReasonOf) -> None:
        self._reason_of = reason_of

    def record(self, asked: AuctionInput, now: datetime) -> BidRecord:
        """Note an auction before its offer is held."""
        field = build_funnel(
            asked.plan,
            asked.contexts,
            asked.scorers,
            seen_enough=asked.seen_enough,
            without=asked.without,
            bids_max=BIDS_MAX,
        )
        listing = _Listing(
            [_pack(one, ctr, -rank, LOST) for rank, one, ctr in field.bids],
            _removed(field, asked),
        )
        looked_at = field.bid_count + sum(listing.unlisted.values())
        if looked_at <= BIDS_MAX:
            listing.unlisted.clear()
            self._list_everybody(asked, field, listing, now)
        elif field.bid_count < BIDS_MAX:
            self._fill(asked, field, listing, now)
        return BidRecord(
            b"".join(listing.bids), field.bid_count, listing.removed(), looked_at, listing.floors()
        )

    def _list_everybody(
        self, asked: AuctionInput, field: AuctionFunnel, listing: "_Listing", now: datetime
    ) -> None:
        """List all those too who took no part, since there is room for everybody."""
        took_part = {one.seniority for _, one, _ in field.bids}
        for look in asked.plan.steps:
            scorer, context = asked.scorers[look.scorer_index], asked.contexts[look.context_index]
            for position, one in enumerate(look.block.bidders):
                if look.members >> position & 1 and one.seniority not in took_part:
                    listing.add(one, scorer.predict_ctr(one), self._reason(one, asked, context, now))

    def _fill(self, asked: AuctionInput, field: AuctionFunnel, listing: "_Listing", now: datetime) -> None:
        """List those who took no part in the order in which they are looked at, until there is no more room."""
        took_part = {one.seniority for _, one, _ in field.bids}
        for turn, look in enumerate(asked.plan.steps):
            scorer, context = asked.scorers[look.scorer_index], asked.contexts[look.context_index]
            left = compute_step_masks(look, context, seen_enough=asked.seen_enough, without=asked.without)
            # Who can reach the floor has done so where all have the same CTR; else it is looked at one by one.
            can_bid = left.unseen & asked.plan.mask_over_floor(turn, scorer.ctr_max)
            for position in iter_positions(look.members & ~can_bid if scorer.is_uniform else look.members):
                one = look.block.bidders[position]
                if not scorer.is_uniform and one.seniority in took_part:
                    continue
                step = _step_of(position, left, asked)
                listing.unlisted[step] -= 1
                reason = self._reason(one, asked, context, now) if step in _IN_PARTS else step
                listing.add(one, scorer.predict_ctr(one), reason)
                if len(listing.bids) == BIDS_MAX:
                    return

    def _reason(self, one: Bidder, asked: AuctionInput, context: Context, now: datetime) -> str:
        return removal.find_removal(
            one,
            context,
            now=now,
            reason_of=self._reason_of,
            seen_enough=asked.seen_enough,
            without=asked.without,
            is_unknown=asked.is_unknown,
        )


class _Listing:
    """Bids one by one; of all who are not listed it is counted which step has removed them."""

    def __init__(self, bids: list[bytes], unlisted: dict[str, int]) -> None:
        self.bids = bids
        self.unlisted = unlisted
        self._listed: dict[str, int] = {}
        self._under: dict[Micros, bytearray] = {}

    def add(self, one: Bidder, ctr: Ctr, reason: str) -> None:
        """List somebody who was removed."""
        self._listed[reason] = self._listed.get(reason, 0) + 1
        if reason == removal.FLOOR:
            self._under.setdefault(one.floor, bytearray()).append(len(self.bids))
        outcome = REMOVED + list(self._listed).index(reason)
        self.bids.append(_pack(one, ctr, ecpm_of(one.bid_type, one.worth, ctr), outcome))

    def removed(self) -> tuple[RemovedCandidates, ...]:
        """Count everybody; the reasons of those who are listed come first, as their outcomes name them by place."""
        counts = self._listed
        for step, count in self.unlisted.items():
            if count:
                counts[step] = counts.get(step, 0) + count
        return tuple(RemovedCandidates(reason, count) for reason, count in counts.items())

    def floors(self) -> tuple[BidsUnderFloor, ...]:
        """Tell which floors those who are listed were under."""
        return tuple(BidsUnderFloor(floor, bytes(places)) for floor, places in self._under.items())


def _pack(one: Bidder, ctr: Ctr, ecpm: int, outcome: int) -> bytes:
    return pack_bid(one.pair, one.bid, one.quality, one.bid_type is BidType.CPC, ctr, ecpm, outcome)


def _removed(field: AuctionFunnel, asked: AuctionInput) -> dict[str, int]:
    return {
        removal.SCHEDULE: field.not_in_time,
        removal.LIMITS: field.excluded,
        removal.TARGETING: field.not_targeted,
        removal.name_frequency_step(is_unknown=asked.is_unknown): field.seen_enough,
        removal.FLOOR: field.under_floor,
    }


def _step_of(position: int, left: StepMasks, asked: AuctionInput) -> str:
    """Name the step as `_removed` does."""
    one = 1 << position
    if not left.available & one:
        return removal.LIMITS if left.in_time & one else removal.SCHEDULE
    if not left.targeted & one:
        return removal.TARGETING
    if left.unseen & one:
        return removal.FLOOR
    return removal.name_frequency_step(is_unknown=asked.is_unknown)
