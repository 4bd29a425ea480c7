"""Serving by auction over HTTP: decode once, decide once, hold what was won, encode once.

Only where it depends on what the reader has seen does the answer wait, for one look-up that it shares with others.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final

from adloom.auction.score import Scoring
from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import IdSource, OpaqueId
from adloom.core.money import IMPRESSIONS_PER_CPM
from adloom.runtime.http.fast.early_errors import answer_error
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    problem_answer,
)
from adloom.serving.auction.auctioneer import Auctioneer, AuctionOutcome
from adloom.serving.auction.encode import AdEncoder
from adloom.serving.auction.frequency_lookup import NOTHING_KNOWN, FrequencyLookup, SeenBanners
from adloom.serving.auction.market import Market, Markets
from adloom.serving.auction.record.removal import FREQUENCY_CAP, FREQUENCY_UNKNOWN, name_frequency_step
from adloom.serving.auction.recorder import AuctionRecorder, FinishedAuction
from adloom.serving.auction.request import DEFAULT_TYPE, AuctionQuery, parse_request
from adloom.serving.auction.result_cache import DecidedAuction
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.index.rows import Delivery

SERVE_PATH: Final = b"/api/v1/ads/serve"

_NO_STORE: Final = (b"cache-control", b"no-store")
SERVED_HEAD: Final = encode_head(
    HTTPStatus.OK, b"application/json", _NO_STORE, (b"x-content-type-options", b"nosniff")
)
NO_AD: Final = FastAnswer(encode_head(HTTPStatus.NO_CONTENT, None, _NO_STORE))

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


class AuctionRoutes:
    """Answers which ad wins a placement."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        index: Callable[[], Index],
        clock: Clock,
        ids: IdSource,
        *,
        stands: Markets,
        policies: Mapping[str, Scoring],
        auctioneer: Auctioneer,
        encoder: AdEncoder,
        frequency: FrequencyLookup,
        recorder: AuctionRecorder,
    ) -> None:
        self._index = index
        self._now = clock.now
        self._new_id = ids.new_opaque
        self._stands = stands
        self._policies = policies
        self._auctioneer = auctioneer
        self._encoder = encoder
        self._frequency = frequency
        self._recorder = recorder
        # Plain counters, read by a collector.
        self.won = 0
        self.unfilled = {"nobody": 0, FREQUENCY_CAP: 0, FREQUENCY_UNKNOWN: 0, "not_held": 0}
        self._price_sum = 0

    @property
    def revenue_micros(self) -> int:
        """What all that was won is worth at its final price, if each is seen once."""
        return self._price_sum // IMPRESSIONS_PER_CPM

    def routes(self) -> list[FastRoute]:
        """List the routes, for the table of the hot path."""
        return [FastRoute(b"POST", SERVE_PATH, is_prefix=False, handler=self.serve, is_batched=True)]

    def serve(self, request: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer `POST /api/v1/ads/serve`."""
        query = parse_request(request.body)
        index, now = self._index(), self._now()
        stand = self._stand(index, query, now)
        if stand is None:
            return _refusal_of(index, query)
        auction = self._auctioneer.decide(request, query.visitor, index, stand, now)
        at = now.timestamp()
        second, is_noted = int(at), self._recorder.wants_next(at)
        if auction.watched:
            return self._answered_in_turn(_Turn(self, request, query, index, auction, now, second, is_noted))
        return self._answer(request, query, index, auction, now, second, is_noted, NOTHING_KNOWN)

    def _answered_in_turn(self, turn: "_Turn") -> FastAnswer | DeferredAnswer:
        """Answer when it is known what the reader has seen, which may be now; only for the record all of it matters."""
        query, auction = turn.query, turn.auction
        asked = (query.user,) if turn.is_noted else (query.user, *auction.watched)
        seen = self._frequency.look_up(
            asked, self._auctioneer.find_capped_banners(auction.stand, turn.index), turn
        )
        return turn if seen is None else self.answered_knowing(turn, seen)

    def answered_knowing(self, turn: "_Turn", seen: SeenBanners) -> FastAnswer | DeferredAnswer:
        """Hold the auction anew where it matters what the reader has seen, or meanwhile all may be another."""
        query, auction, current = turn.query, turn.auction, self._index()
        is_so = not seen.enough or not auction.depends_on(seen.enough)
        if is_so and current is turn.index and self._auctioneer.still_holds(auction):
            return self._answer(
                turn.request, query, current, auction, turn.now, turn.second, turn.is_noted, seen
            )
        now = self._now()
        stand = self._stand(current, query, now)
        if stand is None:
            return _refusal_of(current, query)
        anew = self._auctioneer.decide(turn.request, query.visitor, current, stand, now, seen)
        if not seen.is_all:
            seen = SeenBanners(unseen=auction.watched)
            if not set(anew.watched) <= set(auction.watched):
                seen = self._frequency.decide_unknown(
                    self._auctioneer.find_capped_banners(stand, current), auction.watched
                )
                anew = self._auctioneer.rerun_with(anew, seen)
        second = int(now.timestamp())
        return self._answer(turn.request, query, current, anew, now, second, turn.is_noted, seen)

    def _answered_still(self, turn: "_Turn", unseen: tuple[str, ...]) -> FastAnswer | DeferredAnswer:
        """Answer where nobody could be held yet, and who is next has a cap: it is looked up, unless others were."""
        if not unseen:
            return self._answered_in_turn(turn)
        seen = self._frequency.decide_unknown(
            self._auctioneer.find_capped_banners(turn.auction.stand, turn.index), unseen
        )
        auction = self._auctioneer.rerun_with(turn.auction, seen)
        return self._answer(
            turn.request, turn.query, turn.index, auction, turn.now, turn.second, turn.is_noted, seen
        )

    def _stand(self, index: Index, query: AuctionQuery, now: datetime) -> Market | None:
        """Find the market that is asked for."""
        if query.placement is None:
            return self._stands.find_by_type(index, query.placement_type or DEFAULT_TYPE, now=now)
        stand = self._stands.find_by_slug(index, query.placement.encode(), now=now)
        if stand is None or query.placement_type in {None, stand.market[0].type}:
            return stand
        return None

    def _answer(  # noqa: PLR0913, PLR0917 - on the path of every request, where names would cost
        self,
        request: FastRequest,
        query: AuctionQuery,
        index: Index,
        auction: DecidedAuction,
        now: datetime,
        second: int,
        is_noted: bool,  # noqa: FBT001 - likewise
        seen: SeenBanners,
    ) -> FastAnswer | DeferredAnswer:
        recorder = self._recorder
        sale = self._auctioneer.reserve_winner(
            auction, now, second, is_noted=is_noted and recorder.has_headroom(), seen=seen
        )
        if sale.needs_lookup:
            turn = _Turn(self, request, query, index, sale.auction, now, second, is_noted)
            return self._answered_still(turn, seen.unseen or auction.watched)
        auction, auction_id = sale.auction, self._new_id()
        win = auction.win
        if win is None:
            self._count_unfilled(sale)
            if sale.record is not None:
                recorder.record(self._held(auction_id, query, sale, None, now), sale.record, None)
            return NO_AD
        goods = auction.goods
        if goods is None:
            placement = auction.stand.placements[win.bidder.placement_key]
            goods = auction.goods = self._encoder.render(win, auction.cost, placement)
        user_id = bytes.fromhex(query.user.replace("-", ""))
        served = goods.entry.encode(auction_id.bytes, now, second, user_id)
        if sale.record is None:
            recorder.served(served)
        else:
            recorder.record(self._held(auction_id, query, sale, goods.placement, now), sale.record, served)
        self.won += 1
        self._price_sum += win.final
        return FastAnswer(
            SERVED_HEAD, self._encoder.encode(goods, auction_id, query.user, now, second, sale.lease)
        )

    def _held(
        self,
        auction_id: OpaqueId,
        query: AuctionQuery,
        sale: AuctionOutcome,
        won_on: IndexedPlacement | None,
        now: datetime,
    ) -> FinishedAuction:
        scored_on = won_on or sale.auction.stand.market[0]
        return FinishedAuction(
            auction_id=auction_id,
            query=query,
            outcome=sale,
            won_on=won_on,
            scoring_version=self._policies[scored_on.scoring].version,
            now=now,
        )

    def _count_unfilled(self, sale: AuctionOutcome) -> None:
        asked = sale.auction.asked
        if sale.was_contended:
            self.unfilled["not_held"] += 1
        elif asked.seen_enough:
            # Nobody is asked what a reader has seen unless somebody would have won.
            self.unfilled[name_frequency_step(is_unknown=asked.is_unknown)] += 1
        else:
            self.unfilled["nobody"] += 1


class _Turn(DeferredAnswer):
    """A request that waits for its turn to know what its reader has seen."""

    __slots__ = ("_known", "_routes", "auction", "index", "is_noted", "now", "query", "request", "second")

    def __init__(  # noqa: PLR0913, PLR0917 - a request, and what is known of it so far
        self,
        routes: AuctionRoutes,
        request: FastRequest,
        query: AuctionQuery,
        index: Index,
        auction: DecidedAuction,
        now: datetime,
        second: int,
        is_noted: bool,  # noqa: FBT001 - on the path of every request, where names would cost
    ) -> None:
        # As `DeferredAnswer` does, without the call.
        self._answer = None
        self._calls = []
        self._routes = routes
        self.request = request
        self.query = query
        self.index = index
        self.auction = auction
        self.now = now
        self.second = second
        self.is_noted = is_noted

    def know(self, seen: SeenBanners) -> None:
        """Work out the answer, now that it is known what the reader has seen."""
        try:
            known = self._routes.answered_knowing(self, seen)
            assert isinstance(known, FastAnswer), "nobody waits twice"
            self._known = known
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            self._known = answer_error(error)

    def tell(self) -> None:
        """Give the answer."""
        self.resolve(self._known)


def _refusal_of(index: Index, query: AuctionQuery) -> FastAnswer:
    if query.placement is None:
        return NO_AD  # A type is no address: where nothing of it is auctioned, nobody bids.
    placement = index.by_slug.get(query.placement.encode())
    if placement is None or placement.delivery is Delivery.AUCTION:
        return NO_SUCH_PLACEMENT
    return FILLED_ELSEWHERE[placement.delivery]
