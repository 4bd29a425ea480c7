"""Fills all slots of a page in one request, whatever each is filled by: directly, by auction, or by what the page says.

The answers have the form of direct delivery, so that the tag shows them all the same way. Nothing waits, except for
what the visitor has seen: one look-up for the whole page.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.ids import NO_USER, IdSource
from adloom.pages.url import NormalizedUrl, normalize_url
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    make_problem_answer,
)
from adloom.serving.auction.api import NOBODY, NOT_HELD, AuctionRoutes, WonAd
from adloom.serving.auction.bid_record import FREQUENCY_CAP, FREQUENCY_UNKNOWN
from adloom.serving.auction.request import NO_USER_TEXT, ServeQuery, share_visitor
from adloom.serving.contextual.api import FilledPage, SlotRoutes, SlotVisitor
from adloom.serving.contextual.batch_question import NO_OVERRIDES
from adloom.serving.contextual.decide import (
    BUDGET,
    CAMPAIGN_INACTIVE,
    FREQUENCY,
    NO_DEMAND,
    PACING,
    TARGETING,
)
from adloom.serving.contextual.fill import FilledSlot
from adloom.serving.contextual.page_host import SiteHostMismatchError, find_sender_host
from adloom.serving.contextual.page_lookup import ASK_AGAIN
from adloom.serving.contextual.prepare import encode_category
from adloom.serving.contextual.question import WRONG_HOST
from adloom.serving.contextual.visit import SlotVisit
from adloom.serving.direct.api import NO_SUCH_PLACEMENT, ServeRoutes
from adloom.serving.direct.encode import MillisecondStamp
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.direct.model import FilledPlacement
from adloom.serving.eligibility.decide import iter_eligible
from adloom.serving.eligibility.frequency_lookup import NO_BANNERS, BannerKeys
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.index.rendered_banner import PAIRS_CACHED_MAX, encode_ids
from adloom.serving.index.rows import Delivery
from adloom.serving.request.overrides import Overrides, parse_overrides
from adloom.serving.tag.unknown_slugs import UnknownSlugs

PAGE_PATH: Final = b"/v1/serve/page"
SLOTS_MAX: Final = 20
SHOWN_MAX: Final = 60  # The tag names the last ones.
SERVED_HEAD: Final = encode_head(
    HTTPStatus.OK,
    b"application/json",
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
NOT_ITS_PAGE: Final = make_problem_answer(SiteHostMismatchError(WRONG_HOST))
NULL: Final = b"null"
ALONE: Final = b'"displayOrder":0,"isFallback":false,"transitionDurationMs":null'
# Why an auction had no winner, by the names that slots have.
AUCTION_REASONS: Final = {
    NOBODY: NO_DEMAND,
    NOT_HELD: BUDGET,
    FREQUENCY_CAP: FREQUENCY,
    FREQUENCY_UNKNOWN: FREQUENCY,
}
_MILLISECOND: Final = timedelta(milliseconds=1)

SlugsByDelivery = Mapping[Delivery, Sequence[bytes]]


class BannerOnPage(msgspec.Struct, frozen=True, rename="camel"):
    """What a slot of the page shows that was filled before; the campaign where it is a contextual one."""

    banner_id: UUID
    campaign_id: UUID | None = None


class PageSlotsRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The slots of a page, its address, and the address that it names as its own."""

    slots: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=100)]],
        msgspec.Meta(min_length=1, max_length=SLOTS_MAX),
    ]
    url: str | None = None
    canonical_url: str | None = None
    user_id: UUID | None = None
    context: dict[str, Any] = {}
    shown: Annotated[list[BannerOnPage], msgspec.Meta(max_length=SHOWN_MAX)] = []


class WonAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Which auction an answer is of, and when."""

    auction_id: str
    served_at: str


class PageStamp(msgspec.Struct, frozen=True, gc=False):
    """The id and the time of an answer, as bytes."""

    request_id: bytes
    served_at: bytes


class AskedSlots(msgspec.Struct, frozen=True, gc=False):
    """A request for the slots of a page."""

    http: FastRequest
    slugs: Sequence[bytes]
    addresses: Sequence[str | None]  # The one that the page names, and its own.
    overrides: Overrides
    user_id: UUID | None
    shown: Sequence[BannerOnPage] = ()


_bodies: Final = BodyDecoder(PageSlotsRequest)
_decode_won: Final = msgspec.json.Decoder(WonAnswer).decode
_encode: Final = msgspec.json.encode
_encode_ids: Final = lru_cache(PAIRS_CACHED_MAX)(encode_ids)


class PageSlotRoutes:
    """Answers `POST /v1/serve/page`."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        index: Callable[[], Index],
        clock: Clock,
        ids: IdSource,
        *,
        direct: ServeRoutes,
        auctions: AuctionRoutes,
        contextual: SlotRoutes,
        states: PlacementStates,
        frequency: DirectFrequency,
        is_paced: Callable[[int], bool],
        unknown: UnknownSlugs | None = None,
    ) -> None:
        self._index = index
        self._now = clock.now
        self._new_id = ids.make_opaque
        self._direct = direct
        self._auctions = auctions
        self._contextual = contextual
        self._states = states
        self._frequency = frequency
        self._is_paced = is_paced
        self._unknown = unknown or UnknownSlugs()
        self._stamp = MillisecondStamp()

    def list_routes(self) -> list[FastRoute]:
        return [FastRoute(b"POST", PAGE_PATH, is_prefix=False, handler=self.serve, is_batched=True)]

    def serve(self, request: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer for all slots; a slug named twice is answered once."""
        body = _bodies.decode(request.body)
        overrides = parse_overrides(body.context, within="context.") if body.context else NO_OVERRIDES
        user_id = body.user_id or overrides.user_id
        asked = AskedSlots(
            request,
            tuple(dict.fromkeys(slug.encode() for slug in body.slots)),
            (body.canonical_url, body.url),
            overrides,
            None if user_id == NO_USER else user_id,
            body.shown,
        )
        if asked.user_id is not None:
            index = self._index()
            capped = self._find_capped(index, asked)
            if capped:
                return self._frequency.answer_knowing(
                    asked.user_id, capped, index, lambda seen: self._serve(asked, seen)
                )
        return self._serve(asked, NO_BANNERS)

    def _find_capped(self, index: Index, asked: AskedSlots) -> tuple[IndexedPlacement, ...]:
        """Return what a frequency cap may keep from the page."""
        found = [one for slug in asked.slugs if (one := index.by_slug.get(slug)) is not None]
        capped = {one.key: one for one in found if one.has_frequency}
        url = _choose_url(index, asked)
        if url is not None:
            slots = [slot for one in found if (slot := index.find_slot(one.slug)) is not None]
            capped |= {one.key: one for one in self._contextual.find_capped(index, slots, url)}
        return tuple(capped.values())

    def _serve(self, asked: AskedSlots, seen: BannerKeys) -> FastAnswer:
        index, now = self._index(), self._now()
        slugs = _group(index, asked.slugs)
        if sum(map(len, slugs.values())) < len(asked.slugs):
            missing = [slug for slug in asked.slugs if slug not in index.by_slug]
            self._unknown.note(index, missing, asked.addresses, now)
        on_page = _find_shown(index, asked.shown)
        stamp = PageStamp(str(self._new_id()).encode(), self._stamp.format(now, int(now.timestamp())))
        answers = dict.fromkeys(asked.slugs, NO_SUCH_PLACEMENT.body)
        answers |= self._fill_direct(asked, slugs.get(Delivery.DIRECT, ()), seen, on_page)
        for slug in slugs.get(Delivery.AUCTION, ()):
            answers[slug] = self._fill_auctioned(asked, index.by_slug[slug], seen, on_page, stamp)
        page: FilledPage | None = None
        by_page = slugs.get(Delivery.CONTEXTUAL, ())
        url = _choose_url(index, asked)
        if by_page and url is None:
            answers |= dict.fromkeys(by_page, NOT_ITS_PAGE.body)
        elif by_page and url is not None:
            visitor = SlotVisitor(asked.http, asked.overrides, asked.user_id)
            page = self._contextual.fill_page(visitor, by_page, url, seen, on_page)
            answers |= {
                slug: _encode_slot(index.by_slug[slug], filled, page.visit, stamp)
                for slug, filled in zip(by_page, page.slots, strict=True)
            }
        body = b'{"page":%b,"slots":{%b},"requestId":"%b","servedAt":"%b"}' % (
            NULL if page is None else _encode_page(page, asked.http),
            b",".join([b"%b:%b" % (_encode(slug.decode()), answers[slug]) for slug in asked.slugs]),
            stamp.request_id,
            stamp.served_at,
        )
        return FastAnswer(SERVED_HEAD, body)

    def _fill_direct(
        self, asked: AskedSlots, slugs: Sequence[bytes], seen: BannerKeys, on_page: set[int]
    ) -> dict[bytes, bytes]:
        if not slugs:
            return {}
        filled = self._direct.fill_page(
            asked.http, slugs, asked.overrides, asked.user_id, seen, self._now(), frozenset(on_page)
        )
        answers: dict[bytes, bytes] = {}
        for slug, one in filled.items():
            if isinstance(one, FastAnswer):
                answers[slug] = one.body
                continue
            on_page.update([offer.candidate.banner_key for offer in one.offers])
            names_user = asked.user_id is not None
            reason = NULL if one.offers else _encode(self._explain_empty(one, seen, names_user=names_user))
            answers[slug] = b'{"delivery":"direct","reason":%b,%b' % (reason, one.body[1:])
        return answers

    def _explain_empty(self, filled: FilledPlacement, seen: BannerKeys, *, names_user: bool) -> str:
        """Return why a placement of direct delivery has no banner now."""
        state, placement = filled.state, filled.state.placement
        if not placement.blocks:
            return NO_DEMAND
        if not any(state.available):
            reasons = {self._states.find_reason(key) for key in placement.terms}
            return PACING if PACING in reasons else CAMPAIGN_INACTIVE if reasons <= {None} else BUDGET
        first = next(iter_eligible(placement, filled.context, state.available), None)
        if first is None:
            return TARGETING
        if seen or (names_user and first.frequency):
            return FREQUENCY
        return PACING if any(self._is_paced(key) for key in placement.terms) else BUDGET

    def _fill_auctioned(
        self,
        asked: AskedSlots,
        placement: IndexedPlacement,
        seen: BannerKeys,
        on_page: set[int],
        stamp: PageStamp,
    ) -> bytes:
        user_id = asked.user_id
        user = NO_USER_TEXT if user_id is None else str(user_id)
        query = ServeQuery(user, None, placement.slug.decode(), share_visitor(asked.overrides))
        won = self._auctions.fill(asked.http, query, None if user_id is None else seen, on_page)
        if isinstance(won, FastAnswer):
            return won.body
        if isinstance(won, str):
            return _encode_empty(placement, AUCTION_REASONS[won], stamp)
        on_page.add(won.bidder.banner_key)
        return _encode_won(won)


def _find_shown(index: Index, shown: Sequence[BannerOnPage]) -> set[int]:
    """Return the keys of banners, and negative ones of campaigns, that are on the page already."""
    banners = {index.find_banner_key(one.banner_id) for one in shown}
    campaigns = {
        own.key for one in shown if one.campaign_id and (own := index.by_campaign.get(one.campaign_id))
    }
    return campaigns.union(key for key in banners if key is not None)


def _choose_url(index: Index, asked: AskedSlots) -> NormalizedUrl | None:
    """Return the address that a page is known by: the one that it names, if that is of a slot's site, or its own.

    A page may name another site's as its own. It gets that site's ads then, as anybody can who writes the request by
    hand: nothing that is seen on it is billed, because its reports do not come from the site.
    """
    sites = [slot[1] for slug in asked.slugs if (slot := index.find_slot(slug)) is not None]
    if not sites:
        return None
    urls = (normalize_url(address) for address in asked.addresses if address)
    return next((url for url in urls if url and any(site.has_host(url.host) for site in sites)), None)


def _group(index: Index, slugs: Sequence[bytes]) -> SlugsByDelivery:
    groups: dict[Delivery, list[bytes]] = {}
    for slug in slugs:
        placement = index.by_slug.get(slug)
        if placement is not None:
            groups.setdefault(placement.delivery, []).append(slug)
    return groups


def _encode_page(page: FilledPage, http: FastRequest) -> bytes:
    """Encode what is known of the page; its text is wanted only from itself."""
    look, wanted_in = page.look, page.wanted_in
    if wanted_in <= timedelta(0) and find_sender_host(http) != look.url.host:
        wanted_in = ASK_AGAIN
    return b'{"url":%b,"state":"%b","reclassifyInMs":%d}' % (
        _encode(f"https://{look.url.text}"),
        look.state.value.encode(),
        wanted_in // _MILLISECOND,
    )


def _encode_slot(
    placement: IndexedPlacement, filled: FilledSlot | str | FastAnswer, visit: SlotVisit, stamp: PageStamp
) -> bytes:
    if isinstance(filled, FastAnswer):
        return filled.body
    if isinstance(filled, str):
        return _encode_empty(placement, filled, stamp)
    winner = filled.winner
    offer, category = winner.offer, encode_category(winner.candidate.category)
    own = PageStamp(visit.request_text, visit.served_at)
    return _encode_one(placement, offer.pair, offer.placing, category, filled.tail, own)


def _encode_won(won: WonAd) -> bytes:
    """Encode the ad of an auction; its answer ends with what direct delivery says in the same words."""
    said = _decode_won(won.body)
    tail = won.body[won.body.rindex(b'"trackingToken":') : -1]
    own = PageStamp(said.auction_id.encode(), said.served_at.encode())
    return _encode_one(won.placement, won.bidder.pair, won.bidder.placing, NULL, tail, own)


def _encode_one(  # noqa: PLR0913, PLR0917 - all that an ad is made of
    placement: IndexedPlacement, pair: bytes, banner: bytes, category: bytes, tail: bytes, stamp: PageStamp
) -> bytes:
    """Encode an ad that is alone in its slot, as direct delivery does."""
    return (
        b'{"delivery":"%b","reason":null,%b%b%b,%b,"category":%b,%b}],"requestId":"%b","servedAt":"%b"}'
        % (
            placement.delivery.encode(),
            placement.head[1:],
            _encode_ids(pair),
            banner,
            ALONE,
            category,
            tail,
            stamp.request_id,
            stamp.served_at,
        )
    )


def _encode_empty(placement: IndexedPlacement, reason: str, stamp: PageStamp) -> bytes:
    return b'{"delivery":"%b","reason":%b,%b],"requestId":"%b","servedAt":"%b"}' % (
        placement.delivery.encode(),
        _encode(reason),
        placement.head[1:],
        stamp.request_id,
        stamp.served_at,
    )
