"""Holding an auction: decided from what is there at the moment, won by who can also be held to it."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from adloom.core.money import Micros
from adloom.delivery.auction.decide import NO_KEYS, Win
from adloom.delivery.auction.frequency import Keys
from adloom.delivery.auction.holding import WinHolder, cost_of
from adloom.delivery.auction.noting import Asked, Note, Notebook
from adloom.delivery.auction.request import Reader
from adloom.delivery.auction.stand import Stand, Stands
from adloom.delivery.context import ContextReader
from adloom.delivery.index import Index
from adloom.runtime.http.hot import HotRequest
from adloom.targeting.context import Context

TRIES_MAX: Final = 8  # Of winners whose budget is gone in the same moment; then nobody wins.


class Auction(msgspec.Struct, frozen=True, gc=False):
    """Who would win, and what that was decided from; nothing is held yet."""

    win: Win | None
    stand: Stand
    asked: Asked
    index: Index
    second: int

    def hangs_on(self, seen_enough: Keys) -> bool:
        """Tell whether another wins, or at another price, where some banners take no part."""
        win = self.win
        if win is None or not seen_enough:
            return False
        second = win.runner_up
        return win.bidder.banner_key in seen_enough or (
            second is not None and second.banner_key in seen_enough
        )

    def with_seen(self, seen_enough: Keys) -> "Auction":
        """Note which banners take no part, where that changes nothing else."""
        if not seen_enough:
            return self
        asked = msgspec.structs.replace(self.asked, seen_enough=seen_enough)
        return msgspec.structs.replace(self, asked=asked)


class Sale(msgspec.Struct, frozen=True, gc=False):
    """Who has won, and is held to it."""

    win: Win | None
    cost: Micros  # Of the offer, once it is seen or clicked.
    lease: int
    note: Note | None
    is_contended: bool  # Somebody would have won who could not be held.


class Auctioneer:
    """Holds the auctions of a process."""

    def __init__(
        self,
        stands: Stands,
        contexts: ContextReader,
        holder: WinHolder,
        reason_of: Callable[[int], str | None],
    ) -> None:
        self._stands = stands
        self._contexts = contexts
        self._hold = holder.held
        self._note = Notebook(reason_of).note

    def auction(  # noqa: PLR0913, PLR0917 - on the path of every request, where names would cost
        self,
        request: HotRequest,
        reader: Reader,
        index: Index,
        stand: Stand,
        now: datetime,
        seen_enough: Keys = NO_KEYS,
    ) -> Auction:
        """Decide who would win."""
        contexts = self._contexts_of(request, reader, stand, now)
        scorers = self._stands.scorers(stand, reader.signals(stand.market[0].type, contexts[0]))
        win = self._stands.auction(stand, contexts, scorers, seen_enough=seen_enough)
        asked = Asked(stand.order(scorers), contexts, scorers, now, seen_enough)
        return Auction(win, stand, asked, index, int(now.timestamp()))

    def sale(self, auction: Auction, *, is_noted: bool) -> Sale:
        """Hold the winner to it; if that cannot be, the next best wins."""
        win, asked = auction.win, auction.asked
        note: Note | None = None
        without: Keys = NO_KEYS
        while True:
            if is_noted:
                # Before it is held, since that may take its campaign away.
                note = self._note(asked, of=auction.index)
            if win is None:
                return Sale(None, Micros(0), 0, note, bool(without))
            cost = cost_of(win)
            lease = self._hold(win, cost, auction.second)
            if lease is not None:
                return Sale(win, cost, lease, note, bool(without))
            without |= {win.bidder.campaign_key}
            asked = msgspec.structs.replace(asked, without=without)
            win = None if len(without) >= TRIES_MAX else self._again(auction.stand, asked)

    def _again(self, stand: Stand, asked: Asked) -> Win | None:
        return self._stands.auction(
            stand, asked.contexts, asked.scorers, seen_enough=asked.seen_enough, without=asked.without
        )

    def _contexts_of(
        self, request: HotRequest, reader: Reader, stand: Stand, now: datetime
    ) -> tuple[Context, ...]:
        """Tell what is known about a request, once for each zone that the placements are in."""
        contexts, zones = self._contexts, stand.zones
        context = reader.overrides.applied_to(contexts.context_of(request, zones[0], now))
        if len(zones) == 1:
            return (context,)
        return (context, *[contexts.moved_to(context, zone, now) for zone in zones[1:]])
