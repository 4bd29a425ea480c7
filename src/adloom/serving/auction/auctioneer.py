"""Holding an auction: decided from what is there at the moment, won by who can also be held to it."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.auction.decide import WinningBid
from adloom.serving.auction.frequency_lookup import (
    NOTHING_KNOWN,
    CappedBannerCache,
    CappedBanners,
    SeenBanners,
)
from adloom.serving.auction.market import Market, Markets
from adloom.serving.auction.record.bid_record import AuctionInput, BidRecord, BidRecorder
from adloom.serving.auction.request import VisitorInfo
from adloom.serving.auction.result_cache import AuctionCache, CacheKey, DecidedAuction
from adloom.serving.index.index import Index
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from adloom.targeting.context import Context

TRIES_MAX: Final = 8  # Of winners whose budget is gone in the same moment; then nobody wins.


class AuctionOutcome(msgspec.Struct, frozen=True, gc=False):
    """An auction whose winner, if there is one, is held to it; unless it is still open."""

    auction: DecidedAuction
    lease: int
    record: BidRecord | None
    needs_lookup: bool = False  # It hangs on banners with a cap that were not looked up; nobody is held yet.

    @property
    def was_contended(self) -> bool:
        """Tell whether somebody would have won who could not be held."""
        return bool(self.auction.asked.without)


class Auctioneer:
    """Holds the auctions of a process."""

    def __init__(
        self,
        stands: Markets,
        contexts: ContextParser,
        reserver: Reserver,
        reason_of: Callable[[int], str | None],
    ) -> None:
        self._stands = stands
        self._context_of = contexts.parse
        self._moved_to = contexts.move_to_zone
        self._local_time = contexts.local_time
        self._reserve = reserver.reserve
        self._notebook = BidRecorder(reason_of)
        self._memory = AuctionCache(stands.change_counter)
        self.still_holds = self._memory.is_fresh
        self._capped = CappedBannerCache()

    def decide(  # noqa: PLR0913, PLR0917 - on the path of every request, where names would cost
        self,
        request: FastRequest,
        reader: VisitorInfo,
        index: Index,
        stand: Market,
        now: datetime,
        seen: SeenBanners | None = None,
    ) -> DecidedAuction:
        """Decide who would win, or remember who does."""
        context = self._context_of(request, stand.zones[0], now)
        if seen is not None and seen.enough:
            asked = self._asked(reader, stand, context, now, seen)
            return DecidedAuction(self._won(stand, asked), stand, asked)
        kind: CacheKey = (stand, context, reader)
        if len(stand.zones) > 1:
            # Their hours change at other times.
            kind += tuple([self._local_time(zone, now) for zone in stand.zones[1:]])
        auction = self._memory.get(kind, of=index)
        if auction is None:
            asked = self._asked(reader, stand, context, now)
            win, looked = self._stands.decide(stand, asked.contexts, asked.scorers)
            auction = DecidedAuction(
                win, stand, asked, looked=looked, scored_by=self._stands.list_policies(stand)
            )
            self._memory.put(kind, auction)
        return auction

    def find_capped_banners(self, stand: Market, index: Index) -> CappedBanners:
        """Give the banners of a market that one reader may see only so often."""
        return self._capped.get(stand.market, index)

    def reserve_winner(
        self,
        auction: DecidedAuction,
        now: datetime,
        second: int,
        *,
        is_noted: bool,
        seen: SeenBanners = NOTHING_KNOWN,
    ) -> AuctionOutcome:
        """Hold the winner to it; if that cannot be, the next best wins, as far as it is known what the reader has seen.

        Of banners that changed nothing it is noted too.
        """
        tried = auction
        note: BidRecord | None = None
        while True:
            if is_noted:
                # Before it is held, since that may take its campaign away.
                note = self._noted(tried, now, seen)
            win = tried.win
            if win is None:
                return AuctionOutcome(tried, 0, note)
            lease = self._reserve(win.bidder, tried.cost, second)
            if lease is not None:
                return AuctionOutcome(tried, lease, note)
            tried = self._anew(tried, seen, without=win.bidder.campaign_key)
            if not seen.is_all and not set(tried.watched) <= set(seen.unseen or auction.watched):
                return AuctionOutcome(tried, 0, None, needs_lookup=True)

    def rerun_with(self, auction: DecidedAuction, seen: SeenBanners) -> DecidedAuction:
        """Auction off the same once more, now that it is known or decided of all banners whether they take part."""
        return self._anew(auction, seen) if seen.enough else auction

    def _asked(
        self,
        reader: VisitorInfo,
        stand: Market,
        context: Context,
        now: datetime,
        seen: SeenBanners = NOTHING_KNOWN,
    ) -> AuctionInput:
        context = reader.overrides.apply_to(context)
        scorers = self._stands.build_scorers(stand, reader.signals(stand.market[0].type, context))
        contexts = (context, *[self._moved_to(context, zone, now) for zone in stand.zones[1:]])
        return AuctionInput(
            stand.plan_scan(scorers), contexts, scorers, seen_enough=seen.enough, is_unknown=seen.is_unknown
        )

    def _won(self, stand: Market, asked: AuctionInput) -> WinningBid | None:
        win, _ = self._stands.decide(
            stand, asked.contexts, asked.scorers, seen_enough=asked.seen_enough, without=asked.without
        )
        return win

    def _anew(
        self, auction: DecidedAuction, seen: SeenBanners, *, without: int | None = None
    ) -> DecidedAuction:
        """Auction off the same once more, without a campaign that could not be held."""
        stand, asked = auction.stand, _knowing(auction.asked, seen)
        if without is not None:
            asked = msgspec.structs.replace(asked, without=asked.without | {without})
        return DecidedAuction(
            None if len(asked.without) >= TRIES_MAX else self._won(stand, asked), stand, asked
        )

    def _noted(self, auction: DecidedAuction, now: datetime, seen: SeenBanners) -> BidRecord:
        if seen.enough:
            return self._notebook.record(_knowing(auction.asked, seen), now)
        edition = auction.asked.plan.version(self._stands.change_counter.count)
        if auction.note is not None and auction.note_edition == edition:
            return auction.note
        note = self._notebook.record(auction.asked, now)
        if self._memory.is_fresh(auction):
            self._memory.attach_record(auction, msgspec.structs.replace(note, examined_count=0), edition)
        return note


def _knowing(asked: AuctionInput, seen: SeenBanners) -> AuctionInput:
    return msgspec.structs.replace(
        asked, seen_enough=asked.seen_enough | seen.enough, is_unknown=asked.is_unknown or seen.is_unknown
    )
