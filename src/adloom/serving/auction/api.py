"""Serves auctions over HTTP: parse once, decide once, reserve the winner, encode once.

An answer waits only if it depends on what the visitor has seen; concurrent requests share that look-up.
"""

from binascii import unhexlify
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final

import msgspec

from adloom.auction.score import Scoring
from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import IdSource, OpaqueId
from adloom.core.money import IMPRESSIONS_PER_CPM
from adloom.events.ingest.token import make_charge_void
from adloom.runtime.http.fast.errors import INTERNAL_FAILURE, answer_error
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    make_problem_answer,
)
from adloom.serving.auction.auctioneer import Auctioneer, AuctionRequest
from adloom.serving.auction.bid_record import (
    FREQUENCY_CAP,
    FREQUENCY_UNKNOWN,
    AuctionInput,
    name_frequency_step,
)
from adloom.serving.auction.encode import AdEncoder
from adloom.serving.auction.market import Market, Markets
from adloom.serving.auction.recorder import AuctionRecorder
from adloom.serving.auction.request import DEFAULT_TYPE, ServeQuery, parse_request
from adloom.serving.eligibility.frequency_lookup import BannerKeys, FrequencyLookup, SeenBanners
from adloom.serving.index.bid_block import Bidder
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.index.rows import Delivery
from adloom.serving.request.sender_limits import SenderCheck, TrustingCheck

SERVE_PATH: Final = b"/api/v1/ads/serve"
# Why no bid won, beside the names of frequency caps.
NOBODY: Final = "nobody"
NOT_HELD: Final = "not_held"

CountAuction = Callable[[Market, int | None], None]  # With the key of the placement that was won.

_NO_STORE: Final = (b"cache-control", b"no-store")
SERVED_HEAD: Final = encode_head(
    HTTPStatus.OK, b"application/json", _NO_STORE, (b"x-content-type-options", b"nosniff")
)
NO_AD: Final = FastAnswer(encode_head(HTTPStatus.NO_CONTENT, None, _NO_STORE))

# Encoded once: guessing slugs must not cost more than serving.
NO_SUCH_PLACEMENT: Final = make_problem_answer(
    PlacementNotFoundError("No active placement has this slug and, where one is given, this placementType.")
)
FILLED_ELSEWHERE: Final = {
    Delivery.DIRECT: make_problem_answer(
        PlacementNotFoundError("This placement is filled directly: ask GET /banners/serve/{slug} for it.")
    ),
    Delivery.CONTEXTUAL: make_problem_answer(
        PlacementNotFoundError("This placement is filled by contextual delivery, not by this route.")
    ),
}


class WonAd(msgspec.Struct, frozen=True, gc=False):
    """The winner of a slot of a page, and the answer of its auction."""

    body: bytes
    bidder: Bidder
    placement: IndexedPlacement


class AuctionRoutes:
    """Answers which ad wins a placement."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        index: Callable[[], Index],
        clock: Clock,
        ids: IdSource,
        *,
        markets: Markets,
        policies: Mapping[str, Scoring],
        auctioneer: Auctioneer,
        encoder: AdEncoder,
        frequency: FrequencyLookup,
        recorder: AuctionRecorder,
        senders: SenderCheck | None = None,
        count_traffic: CountAuction | None = None,
    ) -> None:
        self._index = index
        self._now = clock.now
        self._new_id = ids.make_opaque
        self._markets = markets
        self._find_by_slug = markets.find_by_slug
        self._policies = policies
        self._auctioneer = auctioneer
        self._encoder = encoder
        self._find_second = encoder.find_second
        self._frequency = frequency
        self._recorder = recorder
        self._senders = senders or TrustingCheck()
        self._count_traffic = count_traffic
        # Plain counters, read by a collector.
        self.won = 0
        self.unfilled = {NOBODY: 0, FREQUENCY_CAP: 0, FREQUENCY_UNKNOWN: 0, NOT_HELD: 0}
        self._price_sum = 0

    @property
    def revenue_micros(self) -> int:
        """The sum of the final prices of all wins, as if each was seen once."""
        return self._price_sum // IMPRESSIONS_PER_CPM

    def list_routes(self) -> list[FastRoute]:
        return [FastRoute(b"POST", SERVE_PATH, is_prefix=False, handler=self.serve, is_batched=True)]

    def serve(self, http: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer `POST /api/v1/ads/serve`."""
        query = parse_request(http.body)
        index, now = self._index(), self._now()
        market = self._find_market(index, query, now)
        if market is None:
            return _refuse(index, query)
        auction = self._auctioneer.decide(http, query.visitor, index, market, now)
        second = self._find_second(now)
        is_recorded = self._recorder.wants_next(second + now.microsecond / 1e6)
        request = AuctionRequest(http, query, index, now, second, auction, is_recorded)
        if auction.win is not None:
            self._count_offer(request)
        return self._look_up(request) if auction.capped_banner_ids else self._answer(request)

    def fill(
        self, http: FastRequest, query: ServeQuery, seen: BannerKeys | None, on_page: Collection[int]
    ) -> WonAd | str | FastAnswer:
        """Run the auction of a slot of a page; it never waits. Without a winner, return the name of why.

        `seen` is None for a visitor without an id. A banner that is on the page already wins only if no other can,
        and not at all if it has a frequency cap and its visitor an id.
        """
        index, now = self._index(), self._now()
        market = self._find_market(index, query, now)
        if market is None:
            return _refuse(index, query)
        known = None if seen is None else SeenBanners(seen, is_all=True)
        auction = self._auctioneer.decide(http, query.visitor, index, market, now, known)
        is_recorded = self._recorder.wants_next(now.timestamp())
        if known is None and auction.win is not None and auction.win.bidder.banner_key in on_page:
            # Another is wanted, which may have a frequency cap.
            known = self._frequency.decide_anonymous(self._auctioneer.find_capped_banners(market, index))
            auction = self._auctioneer.decide(http, query.visitor, index, market, now, known)
        second = int(now.timestamp())
        request = AuctionRequest(http, query, index, now, second, auction, is_recorded)
        if auction.win is not None:
            self._count_offer(request)
        request.on_page = on_page
        if known is not None:
            request.seen = known
        is_open = known is None and auction.capped_banner_ids
        answer = self._look_up(request) if is_open else self._answer(request)
        assert isinstance(answer, FastAnswer), "what the visitor has seen is known, or cannot be known"
        win = request.auction.win
        if win is None:
            return _name_unfilled(request.auction.input)
        return WonAd(
            answer.body, win.bidder, request.auction.market.placements_by_key[win.bidder.placement_key]
        )

    def _count_offer(self, request: AuctionRequest) -> None:
        """Count the offer of a winner as out, if it may hold something."""
        senders, http = self._senders, request.http
        if senders.may_hold(http, 1, request.second):
            request.is_counted = True
        elif senders.is_doubtful(http):
            request.is_free = True
        else:
            request.is_unheld = True

    def _look_up(self, request: AuctionRequest) -> FastAnswer | DeferredAnswer:
        """Answer as soon as it is known what the visitor has seen; a record needs to know it of all banners."""
        user, auction = request.query.user, request.auction
        asked = (user,) if request.is_recorded else (user, *auction.capped_banner_ids)
        capped = self._auctioneer.find_capped_banners(auction.market, request.index)
        pending = PendingAuction(routes=self, request=request)
        seen = self._frequency.look_up(asked, capped, pending)
        return pending if seen is None else self.answer_knowing(request, seen)

    def answer_knowing(self, request: AuctionRequest, seen: SeenBanners) -> FastAnswer | DeferredAnswer:
        """Decide again if the outcome depends on what the visitor has seen, or the market has changed meanwhile."""
        auction, index = request.auction, self._index()
        is_same = not seen.enough or not auction.depends_on(seen.enough)
        if not (is_same and index is request.index and self._auctioneer.is_fresh(auction)):
            now, query = self._now(), request.query
            market = self._find_market(index, query, now)
            if market is None:
                return _refuse(index, query)
            again = self._auctioneer.decide(request.http, query.visitor, index, market, now, seen)
            if not seen.is_all:
                seen = SeenBanners(unseen=auction.capped_banner_ids)
                if not set(again.capped_banner_ids) <= set(auction.capped_banner_ids):
                    capped = self._auctioneer.find_capped_banners(market, index)
                    seen = self._frequency.decide_unknown(capped, auction.capped_banner_ids)
                    again = self._auctioneer.rerun_with(again, seen)
            request.index, request.auction = index, again
            request.now, request.second = now, int(now.timestamp())
        request.seen = seen
        return self._answer(request)

    def _answer_next_best(
        self, request: AuctionRequest, looked_up: tuple[str, ...]
    ) -> FastAnswer | DeferredAnswer:
        """Look up a capped runner-up after the winner could not be reserved; at most once per request."""
        if not looked_up:
            return self._look_up(request)
        auction = request.auction
        capped = self._auctioneer.find_capped_banners(auction.market, request.index)
        request.seen = self._frequency.decide_unknown(capped, looked_up)
        request.auction = self._auctioneer.rerun_with(auction, request.seen)
        return self._answer(request)

    def _find_market(self, index: Index, query: ServeQuery, now: datetime) -> Market | None:
        placement, placement_type = query.placement, query.placement_type
        if placement is None:
            return self._markets.find_by_type(index, placement_type or DEFAULT_TYPE, now=now)
        market = self._find_by_slug(index, placement.encode(), now)
        if market is None or placement_type is None or placement_type == market.placements[0].type:
            return market
        return None

    def _answer(self, request: AuctionRequest) -> FastAnswer | DeferredAnswer:
        auction, is_recorded = request.auction, request.is_recorded and self._recorder.has_headroom()
        if not self._auctioneer.reserve_winner(request, is_recorded=is_recorded):
            return self._answer_next_best(request, request.seen.unseen or auction.capped_banner_ids)
        auction, auction_id = request.auction, self._new_id()
        win, is_recorded = auction.win, is_recorded and request.is_recorded
        if self._count_traffic is not None:
            self._count_traffic(auction.market, None if win is None else win.bidder.placement_key)
        if win is None:
            if request.is_counted:  # Who had won could not be reserved.
                self._senders.give_back(request.http, 1, request.second)
            self.unfilled[_name_unfilled(auction.input)] += 1
            if is_recorded:
                self._record(request, auction_id, None, None)
            return NO_AD
        rendered = auction.rendered
        if rendered is None:
            placement = auction.market.placements_by_key[win.bidder.placement_key]
            rendered = auction.rendered = self._encoder.render(win, auction.cost, placement)
        now, second = request.now, request.second
        user = unhexlify(request.query.user.replace("-", ""))
        served = rendered.entry.encode(auction_id.bytes, now, second, user)
        if is_recorded:
            self._record(request, auction_id, rendered.placement, served)
        else:
            self._recorder.publish_served(served)
        self.won += 1
        terms = rendered.terms
        if request.is_free:
            terms = make_charge_void(terms)
        else:
            self._price_sum += win.final
        return FastAnswer(
            SERVED_HEAD, self._encoder.encode(rendered, terms, auction_id, user, now, second, request.lease)
        )

    def _record(
        self,
        request: AuctionRequest,
        auction_id: OpaqueId,
        won_on: IndexedPlacement | None,
        served: bytes | None,
    ) -> None:
        scored_on = won_on or request.auction.market.placements[0]
        version = self._policies[scored_on.scoring].version
        self._recorder.record(request, auction_id, won_on, served, scoring_version=version)


class PendingAuction(DeferredAnswer, kw_only=True):
    """The answer of a request that waits to know what its visitor has seen."""

    routes: AuctionRoutes
    request: AuctionRequest
    result: FastAnswer = INTERNAL_FAILURE

    def work_out(self, seen: SeenBanners) -> None:
        try:
            result = self.routes.answer_knowing(self.request, seen)
            assert isinstance(result, FastAnswer), "a request waits once"
            self.result = result
        except Exception as error:  # noqa: BLE001 - the client gets an answer
            self.result = answer_error(error)

    def send(self) -> None:
        self.resolve(self.result)


def _name_unfilled(auction_input: AuctionInput) -> str:
    if auction_input.unreserved:
        return NOT_HELD
    if auction_input.seen_enough:
        # It is looked up only if there was a winner.
        return name_frequency_step(is_unknown=auction_input.is_unknown)
    return NOBODY


def _refuse(index: Index, query: ServeQuery) -> FastAnswer:
    if query.placement is None:
        return NO_AD  # A type is no address: where nothing of it is auctioned, there are no bids.
    placement = index.by_slug.get(query.placement.encode())
    if placement is None or placement.delivery is Delivery.AUCTION:
        return NO_SUCH_PLACEMENT
    return FILLED_ELSEWHERE[placement.delivery]
