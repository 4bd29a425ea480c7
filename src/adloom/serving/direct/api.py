"""The serve routes of the public path: read the clock once, decide once, encode once."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import NO_USER, IdSource
from adloom.core.random import Chance
from adloom.events.ingest.token import TokenSigner, drop_charge
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    make_problem_answer,
)
from adloom.runtime.random import seed_chance
from adloom.serving.direct.encode import NO_LEASES, AnswerEncoder, ServedEventPublisher, parse_user
from adloom.serving.direct.fill import SlotFill
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.direct.model import ChosenOffer, FilledPlacement, ServePageRequest
from adloom.serving.direct.page import PageChoice, fill_page, has_no_repeats
from adloom.serving.eligibility.decide import dedupe_banners, iter_eligible
from adloom.serving.eligibility.frequency_lookup import NO_BANNERS, BannerKeys
from adloom.serving.eligibility.placement_state import (
    PlacementState,
    PlacementStates,
    RenderedOffer,
    make_free,
)
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.index.rows import Delivery
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import ReservedOffers, Reserver
from adloom.serving.request.context import ContextParser
from adloom.serving.request.overrides import Overrides, parse_overrides
from adloom.serving.request.sender_limits import SenderCheck, TrustingCheck
from adloom.targeting.context import Context

SERVE_PREFIX: Final = b"/banners/serve/"
_SLUG_AT: Final = len(SERVE_PREFIX)
A_SECOND: Final = timedelta(seconds=1)
PAGE_PATH: Final = b"/banners/serve"

SERVED_HEAD: Final = encode_head(
    HTTPStatus.OK,
    b"application/json",
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)

# Made once: a guessed slug is answered as fast as a right one.
NO_SUCH_PLACEMENT: Final = make_problem_answer(PlacementNotFoundError("No active placement has this slug."))
FILLED_ELSEWHERE: Final = {
    Delivery.AUCTION: make_problem_answer(
        PlacementNotFoundError("This placement is filled by auction: ask POST /api/v1/ads/serve for it.")
    ),
    Delivery.CONTEXTUAL: make_problem_answer(
        PlacementNotFoundError(
            "This placement is filled by what its page says: ask POST /v1/serve/batch for it."
        )
    ),
}


Found = tuple[PlacementState, Context]
BillingCheck = Callable[[FastRequest, IndexedPlacement], bool]
CountTraffic = Callable[[int, int], None]  # By placement, how many offers an answer has.


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
        leases: LocalLeases | None = None,
        publisher: ServedEventPublisher | None = None,
        senders: SenderCheck | None = None,
        frequency: DirectFrequency | None = None,
        count_traffic: CountTraffic | None = None,
    ) -> None:
        self._index = index
        self._now = clock.now
        self._second = 0  # Since the epoch, and when it begins and ends: comparing is cheaper than computing.
        self._second_begins = self._second_ends = datetime.min.replace(tzinfo=UTC)
        self._new_id = ids.make_opaque
        self._sign = signer.sign
        self._encoder = AnswerEncoder(signer, ids, public_url=public_url)
        contexts = contexts or ContextParser()
        self._parse_context = contexts.parse
        self._find_client = contexts.find_client
        self._states = states or PlacementStates()
        reserver = Reserver(self._states, leases or LocalLeases())
        fill = SlotFill(self._states, reserver)
        self._decide = fill.decide
        self._reserve = fill.reserve
        self._reserve_unheld = SlotFill(self._states, reserver.without_holds()).reserve
        self._senders = senders or TrustingCheck()
        self._frequency = frequency
        self._publisher = publisher
        self._count_traffic = count_traffic
        self.served = 0
        self.empty = 0

    def list_routes(self) -> list[FastRoute]:
        return [
            FastRoute(b"GET", SERVE_PREFIX, is_prefix=True, handler=self.serve, is_batched=True),
            FastRoute(b"POST", PAGE_PATH, is_prefix=False, handler=self.serve_page, is_batched=True),
        ]

    def serve(self, request: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer `GET /banners/serve/{slug}`; it waits only where it depends on what the visitor has seen."""
        now = self._now()
        # As `_find` does, without the call.
        placement = self._index().by_slug.get(request.path[_SLUG_AT:])
        if placement is None or not placement.is_served:
            return _reject_placement(placement)
        context = self._parse_context(request, placement.zone, now)
        state = self._states.get(placement, now)
        if placement.has_frequency:
            answer = self._serve_with_counts(request, placement)
            if answer is not None:
                return answer
        if not self._second_begins <= now < self._second_ends:
            self._begin_second(now)
        second = self._second
        kept = state.answers.get(context)  # As `decide_offers` does, without the call.
        if kept is not None and second < kept[0]:
            self._states.hits += 1
            offers = kept[1]
        else:
            offers = self._states.decide_offers(state, context, second)
        reserved = offers, NO_LEASES
        if placement.is_limited and offers and request.method != b"HEAD":
            if self._senders.may_hold(request, len(offers), second):
                reserved = self._reserve(state, context, offers, second)
                if unmade := len(offers) - len(reserved[0]):
                    self._senders.give_back(request, unmade, second)
            else:
                reserved = self._offer_unheld(request, state, context, offers, second)
        return FastAnswer(SERVED_HEAD, self._answer(request, placement, reserved, now, second))

    def _begin_second(self, now: datetime) -> None:
        self._second = int(now.timestamp())
        self._second_begins = now.replace(microsecond=0)
        self._second_ends = self._second_begins + A_SECOND

    def _serve_with_counts(
        self, request: FastRequest, placement: IndexedPlacement
    ) -> FastAnswer | DeferredAnswer | None:
        """Answer when it is known what the visitor has seen; None where the request names nobody."""
        user_id = parse_user(request.query)
        if user_id is None or user_id == NO_USER or self._frequency is None:
            return None
        return self._frequency.answer_knowing(
            user_id, (placement,), self._index(), lambda seen: self._serve_unseen(request, user_id, seen)
        )

    def _serve_unseen(self, request: FastRequest, user_id: UUID, seen: BannerKeys) -> FastAnswer:
        """Answer without the banners that a visitor has seen often enough; time has passed meanwhile."""
        now = self._now()
        found = self._find(request, request.path[len(SERVE_PREFIX) :], now)
        if isinstance(found, FastAnswer):
            return found
        state, context = found
        placement, second = state.placement, int(now.timestamp())
        offers = self._decide(state, context, second, seen)
        reserved = offers, NO_LEASES
        if placement.is_limited and request.method != b"HEAD":
            reserved = self._hold(request, state, context, offers, second, seen)
        return FastAnswer(SERVED_HEAD, self._answer(request, placement, reserved, now, second, user_id))

    def choose_one(
        self, request: FastRequest, slug: bytes, *, is_shown: bool, is_billed: BillingCheck | None = None
    ) -> ChosenOffer | FastAnswer:
        """Choose one banner, for pages without script. An offer that is not shown is free, and not reserved."""
        now = self._now()
        found = self._find(request, slug, now)
        if isinstance(found, FastAnswer):
            return found
        state, context = found
        placement, second = state.placement, int(now.timestamp())
        chance = self._repeat_chance(request, placement, now) if placement.turns else None
        offers: Sequence[RenderedOffer] = self._states.decide_offers(state, context, second, chance)[:1]
        leases: Sequence[int] = NO_LEASES
        if is_shown:
            if not placement.is_limited or is_billed is None or is_billed(request, placement):
                offers, leases = self._hold(request, state, context, offers, second)
            else:
                offers = make_free(offers)
            self.served += len(offers)
            self.empty += not offers
        if not offers:
            return ChosenOffer(placement, context.device)
        request_id = self._new_id()
        if is_shown and self._publisher is not None:
            self._publisher.publish(request, placement, offers, request_id=request_id, now=now, user_id=None)
        terms = offers[0].token_terms if is_shown else drop_charge(offers[0].token_terms)
        token = self._sign(
            terms,
            request_id=request_id.bytes,
            issued_at=second,
            slot=0,
            lease=leases[0],
            micros=now.microsecond,
        )
        return ChosenOffer(placement, context.device, offers[0], token)

    def _repeat_chance(self, request: FastRequest, placement: IndexedPlacement, now: datetime) -> Chance:
        """Return the same chance for a visitor all day: nothing else ties the link to the image that it is around."""
        visitor = f"{now:%Y-%m-%d} {placement.id} {self._find_client(request)}"
        return seed_chance(visitor)

    def serve_page(self, request: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer `POST /banners/serve`; a repeated slug is answered once."""
        page = _pages.decode(request.body)
        overrides = parse_overrides(page.context, within="context.")
        user_id = page.user_id or overrides.user_id
        if user_id is not None and user_id != NO_USER and self._frequency is not None:
            index = self._index()
            found = [index.by_slug.get(slug.encode()) for slug in dict.fromkeys(page.placements)]
            capped = tuple(one for one in found if one is not None and one.is_served and one.has_frequency)
            if capped:
                return self._frequency.answer_knowing(
                    user_id,
                    capped,
                    index,
                    lambda seen: self._serve_page(request, page, overrides, user_id, seen),
                )
        return self._serve_page(request, page, overrides, user_id)

    def _serve_page(
        self,
        request: FastRequest,
        page: ServePageRequest,
        overrides: Overrides,
        user_id: UUID | None,
        seen: BannerKeys = NO_BANNERS,
    ) -> FastAnswer:
        now = self._now()
        slugs = list(dict.fromkeys(slug.encode() for slug in page.placements))
        filled = self.fill_page(request, slugs, overrides, user_id, seen, now)
        results = [(msgspec.json.encode(slug.decode()), filled[slug].body) for slug in slugs]
        return FastAnswer(SERVED_HEAD, self._encoder.encode_page(results, now, int(now.timestamp())))

    def fill_page(  # noqa: PLR0913, PLR0917 - all that a page is asked with
        self,
        request: FastRequest,
        slugs: Sequence[bytes],
        overrides: Overrides,
        user_id: UUID | None,
        seen: BannerKeys,
        now: datetime,
        shown: BannerKeys = NO_BANNERS,
    ) -> dict[bytes, FilledPlacement | FastAnswer]:
        """Fill placements of a page beside what it has `shown`; what is not filled here has an answer that says so."""
        second = int(now.timestamp())
        asked: list[Found] = []
        filled: dict[bytes, FilledPlacement | FastAnswer] = {}
        for slug in slugs:
            found = self._find(request, slug, now)
            if isinstance(found, FastAnswer):
                filled[slug] = found
            else:
                asked.append((found[0], overrides.apply_to(found[1])))
        names_user = user_id is not None and user_id != NO_USER
        decided = self._decide_page(asked, second, seen, shown, names_user=names_user)
        on_page = {*seen, *shown} | {offer.candidate.banner_key for offers in decided for offer in offers}
        # One request, however many placements it names.
        held = sum(
            [len(one) for (state, _), one in zip(asked, decided, strict=True) if state.placement.is_limited]
        )
        is_unheld = held > 0 and not self._senders.may_hold(request, held, second)
        for (state, context), offers in zip(asked, decided, strict=True):
            if is_unheld:
                reserved = self._offer_unheld(request, state, context, offers, second, on_page)
            else:
                reserved = self._reserve(state, context, offers, second, on_page)
            held -= len(reserved[0]) if state.placement.is_limited else 0
            body = self._answer(request, state.placement, reserved, now, second, user_id)
            filled[state.placement.slug] = FilledPlacement(body, state, context, reserved[0])
        if held and not is_unheld:
            self._senders.give_back(request, held, second)
        return filled

    def _hold(  # noqa: PLR0913, PLR0917 - on the path of every request, where names would cost
        self,
        request: FastRequest,
        state: PlacementState,
        context: Context,
        offers: Sequence[RenderedOffer],
        second: int,
        seen: BannerKeys = NO_BANNERS,
    ) -> ReservedOffers:
        """Reserve what offers need, if their sender may hold it."""
        if not offers or not state.placement.is_limited:
            return offers, NO_LEASES
        if not self._senders.may_hold(request, len(offers), second):
            return self._offer_unheld(request, state, context, offers, second, set(seen))
        reserved = self._reserve(state, context, offers, second, set(seen))
        if unmade := len(offers) - len(reserved[0]):
            self._senders.give_back(request, unmade, second)
        return reserved

    def _offer_unheld(  # noqa: PLR0913, PLR0917 - as `_hold`
        self,
        request: FastRequest,
        state: PlacementState,
        context: Context,
        offers: Sequence[RenderedOffer],
        second: int,
        on_page: set[int] | None = None,
    ) -> ReservedOffers:
        """Make offers that hold nothing; for a doubtful sender they cost nothing either."""
        if self._senders.is_doubtful(request):
            return make_free(offers), NO_LEASES
        return self._reserve_unheld(state, context, offers, second, on_page)

    def _find(self, request: FastRequest, slug: bytes, now: datetime) -> Found | FastAnswer:
        """Return the state of a placement and the context of a request for it, or why it is not served here."""
        placement = self._index().by_slug.get(slug)
        if placement is None or not placement.is_served:
            return _reject_placement(placement)
        context = self._parse_context(request, placement.zone, now)
        return self._states.get(placement, now), context

    def _decide_page(
        self, asked: Sequence[Found], second: int, seen: BannerKeys, shown: BannerKeys, *, names_user: bool
    ) -> Sequence[Sequence[RenderedOffer]]:
        """Decide each placement alone, and all together only if a banner would appear twice."""
        alone = [self._decide(state, context, second, seen) for state, context in asked]
        if has_no_repeats([[offer.candidate for offer in offers] for offers in alone], shown):
            return alone
        # Every other slot of the page can take one candidate away, so a placement needs at most as many as all slots.
        at_most = sum(state.placement.slots_max for state, _ in asked) + len(shown)
        choices = [
            PageChoice(
                dedupe_banners(
                    self._states.iter_in_turn(
                        state,
                        iter_eligible(state.placement, context, state.available, without=seen),
                        # Drawn once a page: a second draw would change how often a banner has its turn.
                        offers,
                    ),
                    at_most=at_most,
                ),
                state.placement.slots_max,
            )
            for (state, context), offers in zip(asked, alone, strict=True)
        ]
        page = fill_page(choices, names_user=names_user, shown=shown)
        return [state.build_offers(candidates) for (state, _), candidates in zip(asked, page, strict=True)]

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
        if self._count_traffic is not None:
            self._count_traffic(placement.key, len(offers))
        request_id = self._new_id()
        if self._publisher is not None:
            self._publisher.publish(
                request, placement, offers, request_id=request_id, now=now, user_id=user_id
            )
        return self._encoder.encode_answer(placement, offers, request_id, now, second, leases, user_id)


def _reject_placement(placement: IndexedPlacement | None) -> FastAnswer:
    return FILLED_ELSEWHERE.get(placement.delivery if placement else Delivery.DIRECT, NO_SUCH_PLACEMENT)
