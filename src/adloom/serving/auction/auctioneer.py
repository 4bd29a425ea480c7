"""Decides auctions from the current market, and reserves what the winner needs."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final

import msgspec

from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.auction.bid_record import AuctionInput, BidRecord, BidRecorder
from adloom.serving.auction.decide import WinningBid
from adloom.serving.auction.market import Market, Markets
from adloom.serving.auction.request import NO_USER_TEXT, ServeQuery, VisitorInfo
from adloom.serving.auction.result_cache import AuctionCache, CacheKey, DecidedAuction
from adloom.serving.eligibility.frequency_lookup import (
    NOTHING_KNOWN,
    CappedBannerCache,
    CappedBanners,
    SeenBanners,
)
from adloom.serving.index.index import Index
from adloom.serving.leases.pace_gate import PaceGate
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from adloom.targeting.context import Context

TRIES_MAX: Final = 8  # Winners that could not be reserved; then the request stays unfilled.


class AuctionRequest(msgspec.Struct, gc=False):
    """One request on its way to an answer."""

    http: FastRequest
    query: ServeQuery
    index: Index
    now: datetime
    second: int
    auction: DecidedAuction
    is_recorded: bool  # If the record still has headroom when it is answered.
    seen: SeenBanners = NOTHING_KNOWN
    lease: int = 0  # Of the winner that is reserved.
    is_free: bool = False  # Its sender is doubtful: the offer holds and costs nothing.
    is_unheld: bool = False  # Its sender is beyond its bounds: the offer holds nothing.
    is_counted: bool = False  # As an offer that its address has out.
    record: BidRecord | None = None
    gate: PaceGate | None = None  # Once a campaign was drawn, or could not be reserved.
    on_page: Collection[int] = ()  # Banners that the page shows already: they win only if no other can.


class Auctioneer:
    """Runs the auctions of a process."""

    def __init__(
        self,
        markets: Markets,
        contexts: ContextParser,
        reserver: Reserver,
        find_exclusion: Callable[[int], str | None],
    ) -> None:
        self._markets = markets
        self._parse_context = contexts.parse
        self._move_to_zone = contexts.move_to_zone
        self._local_time = contexts.local_time
        self._reserver = reserver
        self._unheld = reserver.without_holds()
        self._bid_recorder = BidRecorder(find_exclusion)
        self._cache = AuctionCache(markets.change_counter)
        self.is_fresh = self._cache.is_fresh
        self._capped = CappedBannerCache()

    def decide(  # noqa: PLR0913, PLR0917 - on the path of every request, where names would cost
        self,
        http: FastRequest,
        visitor: VisitorInfo,
        index: Index,
        market: Market,
        now: datetime,
        seen: SeenBanners | None = None,
    ) -> DecidedAuction:
        """Find the winner, from the cache if the result is still the same; nothing is reserved yet."""
        context = self._parse_context(http, market.zones[0], now)
        if seen is not None and seen.enough:
            auction_input = self._build_input(visitor, market, context, now, seen)
            return DecidedAuction(
                self._find_winner(market, auction_input, auction_input.unreserved), market, auction_input
            )
        key: CacheKey = (market, context, visitor)
        if len(market.zones) > 1:
            # The hour changes at other times there.
            key += tuple([self._local_time(zone, now) for zone in market.zones[1:]])
        auction = self._cache.get(key, index)
        if auction is None:
            auction_input = self._build_input(visitor, market, context, now)
            win, scanned = self._markets.decide(market, auction_input.contexts, auction_input.scorers)
            auction = DecidedAuction(
                win,
                market,
                auction_input,
                scanned=scanned,
                strongest=market.find_strongest(auction_input.scorers),
                scored_by=self._markets.list_policies(market),
            )
            self._cache.put(key, auction)
        return auction

    def find_capped_banners(self, market: Market, index: Index) -> CappedBanners:
        return self._capped.get(market.placements, index)

    def reserve_winner(self, request: AuctionRequest, *, is_recorded: bool) -> bool:
        """Reserve the winner, or else the next best, and write both into the request.

        Returns False if the next best depends on a capped banner that was not looked up: nothing is reserved then.
        """
        # With what the page shows already, which is left out anew of each: it may be all that is left.
        whole, seen = request.auction, request.seen
        reserver = self._unheld if request.is_unheld else self._reserver
        looked_up = seen.unseen or whole.capped_banner_ids
        tries = 0
        while True:
            auction = whole
            if request.on_page and whole.win is not None and whole.win.bidder.banner_key in request.on_page:
                auction = self._rerun_off_page(request, whole, seen)
                # A record would say that a frequency cap has removed what is on the page.
                is_recorded = request.is_recorded = False
                if not _is_looked_up(auction, seen, looked_up):
                    request.auction = whole
                    return False
            request.auction = auction
            win = None if request.is_free else auction.win
            may_leave_out = reserver.paced or request.is_unheld or request.gate is not None
            if win is None or not may_leave_out or not _leaves_out(request, win, reserver):
                if is_recorded:
                    # Before the reservation, which may exclude the winner's campaign.
                    request.record = self._record(auction, request.now, seen)
                if win is None:
                    return True
                lease = reserver.reserve(win.bidder, auction.hold, request.second, is_drawn=True)
                if lease is not None:
                    request.lease = lease
                    return True
                tries += 1
                _leave_out(request, win, reserver)
            whole = self._rerun(whole, seen, request.gate, is_last=tries >= TRIES_MAX)
            if not _is_looked_up(whole, seen, looked_up):
                request.auction = whole
                return False

    def rerun_with(self, auction: DecidedAuction, seen: SeenBanners) -> DecidedAuction:
        """Run the same auction again without the banners that the visitor has seen often enough."""
        return self._rerun(auction, seen) if seen.enough else auction

    def _rerun_off_page(
        self, request: AuctionRequest, auction: DecidedAuction, seen: SeenBanners
    ) -> DecidedAuction:
        """Leave out what the page shows already, if another bid can win, or its visitor must not see it again."""
        off_page = self._rerun(
            auction, seen._replace(enough=seen.enough.union(request.on_page)), request.gate
        )
        assert auction.win is not None, "it has won"
        is_capped = request.query.user != NO_USER_TEXT and bool(auction.win.bidder.frequency)
        return off_page if off_page.win is not None or is_capped else auction

    def _build_input(
        self,
        visitor: VisitorInfo,
        market: Market,
        context: Context,
        now: datetime,
        seen: SeenBanners = NOTHING_KNOWN,
    ) -> AuctionInput:
        context = visitor.overrides.apply_to(context)
        signals = visitor.build_signals(market.placements[0].type, context)
        scorers = self._markets.build_scorers(market, signals)
        contexts = (context, *[self._move_to_zone(context, zone, now) for zone in market.zones[1:]])
        return AuctionInput(
            market.plan_scan(scorers), contexts, scorers, seen_enough=seen.enough, is_unknown=seen.is_unknown
        )

    def _find_winner(
        self, market: Market, auction_input: AuctionInput, unreserved: Collection[int]
    ) -> WinningBid | None:
        win, _ = self._markets.decide(
            market,
            auction_input.contexts,
            auction_input.scorers,
            seen_enough=auction_input.seen_enough,
            unreserved=unreserved,
        )
        return win

    def _rerun(
        self,
        auction: DecidedAuction,
        seen: SeenBanners,
        gate: PaceGate | None = None,
        *,
        is_last: bool = False,
    ) -> DecidedAuction:
        """Run an auction again, without what the visitor has seen and what the gate leaves out."""
        market, auction_input = auction.market, _add_seen(auction.input, seen)
        without = auction_input.unreserved if gate is None else gate
        win = None if is_last else self._find_winner(market, auction_input, without)
        if gate is not None:
            paced, unreserved = gate.list_paced() & self._reserver.paced, frozenset(gate)
            auction_input = msgspec.structs.replace(auction_input, unreserved=unreserved, paced=paced)
        return DecidedAuction(win, market, auction_input)

    def _record(self, auction: DecidedAuction, now: datetime, seen: SeenBanners) -> BidRecord:
        if seen.enough:
            return self._bid_recorder.record(_add_seen(auction.input, seen), now)
        version = auction.input.plan.compute_version(self._markets.change_counter.count)
        if auction.record is not None and auction.record_version == version:
            return auction.record
        record = self._bid_recorder.record(auction.input, now)
        if self._cache.is_fresh(auction):
            self._cache.attach_record(auction, msgspec.structs.replace(record, examined_count=0), version)
        return record


def _is_looked_up(auction: DecidedAuction, seen: SeenBanners, looked_up: Collection[str]) -> bool:
    return seen.is_all or set(auction.capped_banner_ids) <= set(looked_up)


def _leaves_out(request: AuctionRequest, win: WinningBid, reserver: Reserver) -> bool:
    """Return whether the winner is left out by its campaign, or the second bid, which then sets no price."""
    first = win.bidder.campaign_key
    second = None if win.runner_up is None else win.runner_up.campaign_key
    gate = request.gate
    if gate is None:
        paced = reserver.paced
        # Of a capped campaign no offer is made that is not held.
        if second not in paced and not request.is_unheld:
            if first not in paced or not reserver.is_left_out(first):
                return False
            request.gate = reserver.make_gate((first,))
            return True
        gate = request.gate = reserver.make_gate()
    gate.draw = reserver.is_left_out
    if first in gate:
        return True
    gate.draw = reserver.is_left_out_as_second
    return second is not None and second in gate


def _leave_out(request: AuctionRequest, win: WinningBid, reserver: Reserver) -> None:
    """Leave out a winner that could not be reserved."""
    if request.gate is None:
        request.gate = reserver.make_gate()
    request.gate.draw = reserver.is_left_out
    request.gate.add(win.bidder.campaign_key)


def _add_seen(auction_input: AuctionInput, seen: SeenBanners) -> AuctionInput:
    return msgspec.structs.replace(
        auction_input,
        seen_enough=auction_input.seen_enough | seen.enough,
        is_unknown=auction_input.is_unknown or seen.is_unknown,
    )
