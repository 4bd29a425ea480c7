"""The serve routes of the public path: read the clock once, decide once, encode once."""

from collections.abc import Callable, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import IdSource
from adloom.events.ingest.token import TokenSigner, drop_charge
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import (
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    problem_answer,
)
from adloom.serving.direct.encode import NO_LEASES, AnswerEncoder
from adloom.serving.direct.page import PageChoice, dedupe_banners, fill_page, has_no_repeats
from adloom.serving.direct.served_events import ServedEventPublisher
from adloom.serving.eligibility.caps import CapTracker
from adloom.serving.eligibility.decide import iter_eligible
from adloom.serving.eligibility.placement_state import PlacementState, PlacementStates, RenderedOffer
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.index.rows import Delivery
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import ReservedOffers, Reserver
from adloom.serving.request.context import ContextParser
from adloom.serving.request.overrides import parse_overrides
from adloom.targeting.context import Context

SERVE_PREFIX: Final = b"/banners/serve/"
PAGE_PATH: Final = b"/banners/serve"
PLACEMENTS_A_PAGE_MAX: Final = 20

SERVED_HEAD: Final = encode_head(
    HTTPStatus.OK,
    b"application/json",
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)

# Made once: whoever guesses slugs gets these answers as fast as a right one.
NO_SUCH_PLACEMENT: Final = problem_answer(PlacementNotFoundError("No active placement has this slug."))
FILLED_ELSEWHERE: Final = {
    Delivery.AUCTION: problem_answer(
        PlacementNotFoundError("This placement is filled by auction: ask POST /api/v1/ads/serve for it.")
    ),
    Delivery.CONTEXTUAL: problem_answer(
        PlacementNotFoundError("This placement is filled by contextual delivery, not by this route.")
    ),
}


class ChosenOffer(msgspec.Struct, frozen=True):
    """What fills the first slot of a placement for a request: an offer with its token, or nothing."""

    placement: IndexedPlacement
    device: str | None
    offer: RenderedOffer | None = None
    token: bytes = b""


class ServePageRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The placements of a page, and what is known about its reader."""

    placements: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=100)]],
        msgspec.Meta(min_length=1, max_length=PLACEMENTS_A_PAGE_MAX),
    ]
    context: dict[str, Any] = {}
    user_id: UUID | None = None


_pages: Final = BodyDecoder(ServePageRequest)


class ServeRoutes:
    """Answers which ads fill a placement, or all placements of a page."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        index: Callable[[], Index],
        signer: TokenSigner,
        clock: Clock,
        ids: IdSource,
        *,
        public_url: str,
        contexts: ContextParser | None = None,
        states: PlacementStates | None = None,
        caps: CapTracker | None = None,
        leases: LocalLeases | None = None,
        publisher: ServedEventPublisher | None = None,
    ) -> None:
        self._index = index
        self._now = clock.now
        self._new_id = ids.new_opaque
        self._sign = signer.sign
        self._encoder = AnswerEncoder(signer, ids, public_url=public_url)
        self._contexts = contexts or ContextParser()
        self._context_of = self._contexts.parse
        self._states = states or PlacementStates()
        self._reserve = Reserver(self._states, caps or CapTracker(), leases or LocalLeases()).reserve_all
        self._publisher = publisher
        self.served = 0
        self.empty = 0

    def routes(self) -> list[FastRoute]:
        """List the routes, for the table of the hot path."""
        return [
            FastRoute(b"GET", SERVE_PREFIX, is_prefix=True, handler=self.serve),
            FastRoute(b"POST", PAGE_PATH, is_prefix=False, handler=self.serve_page),
        ]

    def serve(self, request: FastRequest) -> FastAnswer:
        """Answer `GET /banners/serve/{slug}`."""
        placement = self._index().by_slug.get(request.path[len(SERVE_PREFIX) :])
        if placement is None or not placement.is_served:
            return _refusal_of(placement)
        now = self._now()
        second = int(now.timestamp())
        context = self._context_of(request, placement.zone, now)
        state = self._states.get(placement, now)
        offers = self._states.decide_offers(state, context, second)
        reserved = offers, NO_LEASES
        if (placement.terms or placement.caps) and request.method != b"HEAD":
            reserved = self._reserve(offers, second)
        return FastAnswer(SERVED_HEAD, self._answer(request, placement, reserved, now, second))

    def choose_one(self, request: FastRequest, slug: bytes, *, is_shown: bool) -> ChosenOffer | FastAnswer:
        """Choose for those who can show one banner only; what is not shown is held by nobody, and free."""
        placement = self._index().by_slug.get(slug)
        if placement is None or not placement.is_served:
            return _refusal_of(placement)
        now = self._now()
        second = int(now.timestamp())
        context = self._context_of(request, placement.zone, now)
        offers = self._states.decide_offers(self._states.get(placement, now), context, second)[:1]
        leases = NO_LEASES
        if is_shown:
            offers, leases = self._reserve(offers, second)
            self.served += len(offers)
            self.empty += not offers
        if not offers:
            return ChosenOffer(placement, context.device)
        request_id = self._new_id()
        if is_shown and self._publisher is not None:
            self._publisher.publish(request, placement, offers, request_id=request_id, now=now, user_id=None)
        terms = offers[0].token_terms if is_shown else drop_charge(offers[0].token_terms)
        token = self._sign(terms, request_id=request_id.bytes, issued_at=second, slot=0, lease=leases[0])
        return ChosenOffer(placement, context.device, offers[0], token)

    def serve_page(self, request: FastRequest) -> FastAnswer:
        """Answer `POST /banners/serve`; a slug that is there twice is answered once."""
        page = _pages.decode(request.body)
        overrides = parse_overrides(page.context, within="context.")
        user_id = page.user_id or overrides.user_id
        now = self._now()
        second = int(now.timestamp())
        index = self._index()
        slugs = list(dict.fromkeys(slug.encode() for slug in page.placements))
        asked: list[tuple[PlacementState, Context]] = []
        refusals: dict[bytes, bytes] = {}
        for slug in slugs:
            placement = index.by_slug.get(slug)
            if placement is None or not placement.is_served:
                refusals[slug] = _refusal_of(placement).body
                continue
            context = overrides.apply_to(self._context_of(request, placement.zone, now))
            asked.append((self._states.get(placement, now), context))
        answers = {
            state.placement.slug: self._answer(
                request, state.placement, self._reserve(offers, second), now, second, user_id
            )
            for (state, _), offers in zip(asked, self._page_offers(asked, second), strict=True)
        }
        results = [(msgspec.json.encode(slug.decode()), (answers | refusals)[slug]) for slug in slugs]
        return FastAnswer(SERVED_HEAD, self._encoder.encode_page(results, now, second))

    def _page_offers(
        self, asked: Sequence[tuple[PlacementState, Context]], second: int
    ) -> Sequence[Sequence[RenderedOffer]]:
        """Decide each placement for itself, and all together only where they would repeat each other."""
        alone = [self._states.decide_offers(state, context, second) for state, context in asked]
        if has_no_repeats([[offer.candidate for offer in offers] for offers in alone]):
            return alone
        # Every other slot of the page can take one candidate away; nobody needs more than all slots.
        at_most = sum(state.placement.slots_max for state, _ in asked)
        choices = [
            PageChoice(
                dedupe_banners(iter_eligible(state.placement, context, state.available), at_most=at_most),
                state.placement.slots_max,
            )
            for state, context in asked
        ]
        return [
            state.build_offers(candidates)
            for (state, _), candidates in zip(asked, fill_page(choices), strict=True)
        ]

    def _answer(  # noqa: PLR0913, PLR0917 - on the path of every request, where names would cost
        self,
        request: FastRequest,
        placement: IndexedPlacement,
        reserved: ReservedOffers,
        now: datetime,
        second: int,
        user_id: UUID | None = None,
    ) -> bytes:
        offers, leases = reserved
        if offers:
            self.served += 1
        else:
            self.empty += 1
        request_id = self._new_id()
        if self._publisher is not None:
            self._publisher.publish(
                request, placement, offers, request_id=request_id, now=now, user_id=user_id
            )
        return self._encoder.encode_answer(placement, offers, request_id, now, second, leases)


def _refusal_of(placement: IndexedPlacement | None) -> FastAnswer:
    delivery = Delivery.DIRECT if placement is None else placement.delivery
    return FILLED_ELSEWHERE.get(delivery, NO_SUCH_PLACEMENT)
