"""Serving by auction over HTTP: decode once, decide once, hold what was won, encode once.

Only where it depends on what the reader has seen does the answer wait, for one look-up that it shares with others.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final

import msgspec

from adloom.auction.score import Scoring
from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import IdSource, WrittenId
from adloom.core.money import IMPRESSIONS_PER_CPM, Micros
from adloom.delivery.auction.auctioneer import Auction, Auctioneer, Sale
from adloom.delivery.auction.book import BidBlock
from adloom.delivery.auction.encode import AdEncoder
from adloom.delivery.auction.frequency import CappedBanners, CappedBook, FrequencyLook, Keys
from adloom.delivery.auction.record import AuctionRecorder, Held
from adloom.delivery.auction.request import DEFAULT_TYPE, Reader, ServeRequest, decode, reader_of
from adloom.delivery.auction.stand import Stand, Stands
from adloom.delivery.index import Index, Placement
from adloom.delivery.rows import Delivery
from adloom.runtime.http.hot import Answer, HotRequest, HotRoute, answer_head, problem_answer

SERVE_PATH: Final = b"/api/v1/ads/serve"

_NO_STORE: Final = (b"cache-control", b"no-store")
SERVED_HEAD: Final = answer_head(
    HTTPStatus.OK, b"application/json", _NO_STORE, (b"x-content-type-options", b"nosniff")
)
NO_AD: Final = Answer(answer_head(HTTPStatus.NO_CONTENT, None, _NO_STORE))

# Made once: whoever guesses gets these answers as fast as a right one.
NO_SUCH_PLACEMENT: Final = problem_answer(
    PlacementNotFoundError("No active placement has this slug and, where one is given, this placementType.")
)
FILLED_ELSEWHERE: Final = {
    Delivery.DIRECT: problem_answer(
        PlacementNotFoundError("This placement is filled directly: ask GET /banners/serve/{slug} for it.")
    ),
    Delivery.CONTEXTUAL: problem_answer(
        PlacementNotFoundError("This placement is filled by contextual delivery, not by this route.")
    ),
}


class _Query(msgspec.Struct, frozen=True):
    """A request that was understood."""

    request: HotRequest
    body: ServeRequest
    reader: Reader


class AuctionRoutes:
    """Answers which ad wins a placement."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        index: Callable[[], Index],
        clock: Clock,
        ids: IdSource,
        *,
        stands: Stands,
        policies: Mapping[str, Scoring],
        auctioneer: Auctioneer,
        encoder: AdEncoder,
        frequency: FrequencyLook,
        recorder: AuctionRecorder,
    ) -> None:
        self._index = index
        self._now = clock.now
        self._new_id = ids.written
        self._stands = stands
        self._policies = policies
        self._auctioneer = auctioneer
        self._encoder = encoder
        self._frequency = frequency
        self._capped = CappedBook()
        self._recorder = recorder
        # Plain counters, read by a collector.
        self.won = 0
        self.unfilled = {"nobody": 0, "frequency_cap": 0, "not_held": 0}
        self._price_sum = 0

    @property
    def revenue_micros(self) -> int:
        """What all that was won is worth at its final price, if each is seen once."""
        return self._price_sum // IMPRESSIONS_PER_CPM

    def routes(self) -> list[HotRoute]:
        """List the routes, for the table of the hot path."""
        return [HotRoute(b"POST", SERVE_PATH, is_prefix=False, handler=self.serve)]

    def serve(self, request: HotRequest) -> Answer | asyncio.Future[Answer]:
        """Answer `POST /api/v1/ads/serve`."""
        body = decode(request.body)
        query = _Query(request, body, reader_of(body.user_context))
        index, now = self._index(), self._now()
        stand = self._stand(index, body, now)
        if stand is None:
            return _refusal_of(index, body)
        auction = self._auctioneer.auction(request, query.reader, index, stand, now)
        if auction.win is None or not auction.win.hangs_on_frequency:
            return self._answer(query, auction)
        return self._answered_in_turn(query, auction, self._capped.of(stand.market))

    def _answered_in_turn(
        self, query: _Query, auction: Auction, banners: CappedBanners
    ) -> Answer | asyncio.Future[Answer]:
        """Answer when it is known what the reader has seen, which may be now."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answer(seen: Keys) -> None:
            if answered.done():
                return
            try:
                answered.set_result(self._answered_knowing(query, auction, seen))
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                answered.set_exception(error)

        seen = self._frequency.seen_enough(query.body.user_id, banners, answer)
        return answered if seen is None else self._answered_knowing(query, auction, seen)

    def _answered_knowing(self, query: _Query, auction: Auction, seen: Keys) -> Answer:
        """Hold the auction anew where it matters what the reader has seen, or meanwhile all may be another."""
        index = self._index()
        if index is auction.index and not auction.hangs_on(seen):
            # Who is gone since cannot be held, and the next best wins.
            return self._answer(query, auction.with_seen(seen))
        now = self._now()
        stand = self._stand(index, query.body, now)
        if stand is None:
            return _refusal_of(index, query.body)
        return self._answer(
            query, self._auctioneer.auction(query.request, query.reader, index, stand, now, seen)
        )

    def _stand(self, index: Index, body: ServeRequest, now: datetime) -> Stand | None:
        """Find the market that is asked for."""
        if body.placement is None:
            return self._stands.of_type(index, body.placement_type or DEFAULT_TYPE, now=now)
        stand = self._stands.of_slug(index, body.placement.encode(), now=now)
        if stand is None or body.placement_type in {None, stand.market[0].type}:
            return stand
        return None

    def _answer(self, query: _Query, auction: Auction) -> Answer:
        sale = self._auctioneer.sale(auction, is_noted=self._recorder.is_wanted(auction.second))
        win, auction_id = sale.win, self._new_id()
        placement = None if win is None else auction.index.by_key[win.bidder.placement_key]
        if win is not None or sale.note is not None:
            self._recorder.tell(self._held(query, auction, sale, placement, auction_id))
        if win is None or placement is None:
            self._count_unfilled(auction, sale)
            return NO_AD
        self.won += 1
        self._price_sum += win.final
        second = auction.second
        token = self._encoder.token(
            win.bidder, placement.id, sale.cost, auction_id=auction_id, second=second, lease=sale.lease
        )
        user_id, now = query.body.user_id, auction.asked.now
        ad = self._encoder.answer(win, token, auction_id=auction_id, user_id=user_id, now=now, second=second)
        return Answer(SERVED_HEAD, ad)

    def _held(
        self,
        query: _Query,
        auction: Auction,
        sale: Sale,
        placement: Placement | None,
        auction_id: WrittenId,
    ) -> Held:
        market = auction.stand.market
        named = None if query.body.placement is None else market[0]
        scored_on = placement or market[0]
        return Held(
            auction_id=auction_id,
            user_id=query.body.user_id,
            placement_type=market[0].type,
            named=named,
            won_on=placement,
            win=sale.win,
            floor=sale.win.bidder.floor if sale.win is not None else _floor_of(named),
            context=auction.asked.contexts[0],
            reader=query.reader,
            scoring=scored_on.scoring,
            scoring_version=self._policies[scored_on.scoring].version,
            now=auction.asked.now,
            note=sale.note,
        )

    def _count_unfilled(self, auction: Auction, sale: Sale) -> None:
        if sale.is_contended:
            self.unfilled["not_held"] += 1
        else:
            # Nobody is asked what a reader has seen unless somebody would have won.
            self.unfilled["frequency_cap" if auction.asked.seen_enough else "nobody"] += 1


def _floor_of(placement: Placement | None) -> Micros:
    """Tell the floor of a placement that was named, as far as anybody bids there."""
    blocks = () if placement is None else placement.blocks
    return next((block.floor_min for block in blocks if isinstance(block, BidBlock)), Micros(0))


def _refusal_of(index: Index, body: ServeRequest) -> Answer:
    if body.placement is None:
        return NO_AD  # A type is no address: where nothing of it is auctioned, nobody bids.
    placement = index.by_slug.get(body.placement.encode())
    if placement is None or placement.delivery is Delivery.AUCTION:
        return NO_SUCH_PLACEMENT
    return FILLED_ELSEWHERE[placement.delivery]
