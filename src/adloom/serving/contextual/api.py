"""Answers contextual slots over HTTP: one slot, or all slots of a page.

What is known of the page decides which ads may be shown; the answer of a page that is not known asks the tag for its
text. An answer waits only where it depends on what the visitor has seen.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Final, Protocol
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import NO_USER, IdSource
from adloom.events.ingest.ivt.pages import PageCheck, PageOrigin
from adloom.pages.follow.page_table import PageState
from adloom.pages.url import NormalizedUrl
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    index_headers,
    problem_answer,
)
from adloom.serving.contextual.fill import FilledSlot
from adloom.serving.contextual.page_host import SiteHostMismatchError, parse_page_url
from adloom.serving.contextual.page_look import (
    KnownPages,
    PageLook,
    PageTables,
    ShortlistTables,
    find_obstacle,
)
from adloom.serving.contextual.prepare import PreparedSlots
from adloom.serving.contextual.question import WRONG_HOST, QueriedSlot, SlotQueries
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.contextual.slot_auctions import SlotAuctions
from adloom.serving.contextual.visit import SlotVisit
from adloom.serving.direct.api import CountTraffic
from adloom.serving.direct.encode import MillisecondStamp
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.eligibility.frequency_lookup import NO_BANNERS, BannerKeys
from adloom.serving.index.index import Index, IndexedPlacement, MarketPlacements
from adloom.serving.index.site import IndexedSite
from adloom.serving.request.context import ContextParser
from adloom.serving.request.overrides import Overrides, parse_overrides
from adloom.serving.request.sender_limits import SenderCheck, TrustingCheck

SERVE_PATH: Final = b"/v1/serve"
BATCH_PATH: Final = b"/v1/serve/batch"
SLOTS_MAX: Final = 20
_MILLISECOND: Final = timedelta(milliseconds=1)

_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
SERVED_HEAD: Final = encode_head(HTTPStatus.OK, b"application/json", *_HEADERS)
NO_SUCH_PLACEMENT: Final = problem_answer(
    PlacementNotFoundError("No active contextual placement has this slug.")
)
OTHER_SITE: Final = problem_answer(SiteHostMismatchError("This slot is of another site than the page."))
NO_AD: Final = b"null"
NOTHING_ON_PAGE: Final = frozenset[int]()
NO_OVERRIDES: Final = Overrides({})

Slot = tuple[IndexedPlacement, IndexedSite]


class CountPage(Protocol):
    """Counts a request of a slot, by its placement's key and the page's URL."""

    def __call__(self, placement_key: int, url: str, *, is_filled: bool) -> None: ...


class SlotsRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The contextual slots of a page."""

    url: str
    slots: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=100)]],
        msgspec.Meta(min_length=1, max_length=SLOTS_MAX),
    ]
    user_id: UUID | None = None
    context: dict[str, Any] = {}


class SlotVisitor(msgspec.Struct, frozen=True, gc=False):
    """Who asks, as far as the request says so."""

    http: FastRequest
    overrides: Overrides
    user_id: UUID | None


class AskedPage(msgspec.Struct, frozen=True, gc=False):
    """A page whose slots are filled, from one index and at one moment."""

    index: Index
    look: PageLook
    visit: SlotVisit


class FilledPage(msgspec.Struct, frozen=True, gc=False):
    """The slots of a page: each has an ad, the name of what keeps it empty, or a problem."""

    asked: AskedPage
    wanted_in: timedelta  # The page's text; now, if that is not after zero.
    slots: Mapping[bytes, FilledSlot | str | FastAnswer]
    is_elsewhere: bool  # Of none of the sites that the slots are of.


_bodies: Final = BodyDecoder(SlotsRequest)


class SlotRoutes:
    """Answers `GET /v1/serve` and `POST /v1/serve/batch`."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        index: Callable[[], Index],
        pages: PageTables,
        clock: Clock,
        ids: IdSource,
        *,
        recent: RecentTexts,
        shortlists: ShortlistTables,
        auctions: SlotAuctions,
        seal_user: Callable[[bytes, bytes], bytes],
        contexts: ContextParser | None = None,
        senders: SenderCheck | None = None,
        frequency: DirectFrequency | None = None,
        page_check: PageCheck | None = None,
        count_traffic: CountTraffic | None = None,
        count_page: CountPage | None = None,
    ) -> None:
        self._index = index
        self._known = KnownPages(pages, shortlists, recent)
        self._page_check = page_check
        self._now = clock.now
        self._new_id = ids.new_opaque
        self._auctions = auctions
        self._seal_user = seal_user
        self._parse_context = (contexts or ContextParser()).parse
        self._senders = senders or TrustingCheck()
        self._frequency = frequency
        self._count_traffic = count_traffic
        self._count_page = count_page
        self._stamp = MillisecondStamp()
        self._queries = SlotQueries()
        self._prepared = PreparedSlots()
        self._no_ad: dict[tuple[PageState, str], FastAnswer] = {}
        # Plain counters, read by the metrics.
        self.asked = {state.value: 0 for state in PageState}
        self.served = 0
        self.unfilled: dict[str, int] = {}

    def routes(self) -> list[FastRoute]:
        return [
            FastRoute(b"GET", SERVE_PATH, is_prefix=False, handler=self.serve),
            FastRoute(b"POST", BATCH_PATH, is_prefix=False, handler=self.serve_batch),
        ]

    # One slot.

    def serve(self, request: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer `GET /v1/serve`."""
        question = self._queries.parse(request.query)
        user_id = question.user_id
        visitor = SlotVisitor(request, NO_OVERRIDES, user_id)  # The context's parser reads the query.
        if user_id is None or user_id == NO_USER or self._frequency is None:
            return self._serve(visitor, question, NO_BANNERS)
        slot = self._index().find_slot(question.slug)
        if slot is None:
            return NO_SUCH_PLACEMENT
        question.check_host(slot[1])
        return self._when_seen(
            user_id, [slot], question.url, lambda seen: self._serve(visitor, question, seen)
        )

    def _serve(self, visitor: SlotVisitor, question: QueriedSlot, seen: BannerKeys) -> FastAnswer:
        index, now = self._index(), self._now()
        slot = index.find_slot(question.slug)
        if slot is None:
            return NO_SUCH_PLACEMENT
        question.check_host(slot[1])
        look = self._known.look_at(slot[1], question.url, now)
        self.asked[look.state.value] += 1
        asked = AskedPage(index, look, self._visit(visitor, now, seen))
        filled = self._fill(asked, slot, 0, NOTHING_ON_PAGE)
        if isinstance(filled, FilledSlot):
            return FastAnswer(SERVED_HEAD, filled.body)
        known = self._no_ad.get((look.state, filled))
        if known is None:
            known = self._no_ad[look.state, filled] = _build_no_ad(look.state, filled)
        return known

    # All slots of a page.

    def serve_batch(self, request: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer `POST /v1/serve/batch`; a slug named twice is answered once."""
        asked = _bodies.decode(request.body)
        overrides = parse_overrides(asked.context, within="context.") if asked.context else NO_OVERRIDES
        url = parse_page_url(asked.url)
        slugs = tuple(dict.fromkeys(slug.encode() for slug in asked.slots))
        user_id = asked.user_id or overrides.user_id
        visitor = SlotVisitor(request, overrides, user_id)
        if user_id is None or user_id == NO_USER or self._frequency is None:
            return self._serve_batch(visitor, slugs, url, NO_BANNERS)
        slots = [slot for slot in map(self._index().find_slot, slugs) if slot is not None]
        if slots and not any(site.has_host(url.host) for _, site in slots):
            raise SiteHostMismatchError(WRONG_HOST)
        return self._when_seen(user_id, slots, url, lambda seen: self._serve_batch(visitor, slugs, url, seen))

    def _serve_batch(
        self, visitor: SlotVisitor, slugs: tuple[bytes, ...], url: NormalizedUrl, seen: BannerKeys
    ) -> FastAnswer:
        page = self.fill_page(visitor, slugs, url, seen, set())
        if page.is_elsewhere:
            raise SiteHostMismatchError(WRONG_HOST)
        answers = [
            b"%b:%b" % (msgspec.json.encode(slug.decode()), NO_AD if isinstance(filled, str) else filled.body)
            for slug, filled in page.slots.items()
        ]
        visit = page.asked.visit
        body = b'{"page":"%b","reclassifyInMs":%d,"slots":{%b},"requestId":"%b","servedAt":"%b"}' % (
            page.asked.look.state.value.encode(),
            page.wanted_in // _MILLISECOND,
            b",".join(answers),
            visit.request_text,
            visit.served_at,
        )
        return FastAnswer(SERVED_HEAD, body)

    def fill_page(
        self,
        visitor: SlotVisitor,
        slugs: Iterable[bytes],
        url: NormalizedUrl,
        seen: BannerKeys,
        on_page: set[int],
    ) -> FilledPage:
        """Fill the slots of a page, without what is on it already: banners by key, campaigns by negative key."""
        index, now = self._index(), self._now()
        found = {slug: index.find_slot(slug) for slug in slugs}
        site = next((slot[1] for slot in found.values() if slot and slot[1].has_host(url.host)), None)
        look = PageLook(url, PageState.UNKNOWN) if site is None else self._known.look_at(site, url, now)
        self.asked[look.state.value] += 1
        asked = AskedPage(index, look, self._visit(visitor, now, seen))
        filled: dict[bytes, FilledSlot | str | FastAnswer] = {}
        for number, (slug, slot) in enumerate(found.items()):
            if slot is None:
                filled[slug] = NO_SUCH_PLACEMENT
            elif slot[1] is not site:
                filled[slug] = OTHER_SITE
            else:
                one = filled[slug] = self._fill(asked, slot, number, on_page)
                if isinstance(one, FilledSlot):
                    creative = one.winner.creative
                    on_page |= {creative.banner_key, -creative.campaign_key}
        is_elsewhere = site is None and any(slot is not None for slot in found.values())
        return FilledPage(asked, self._known.find_wait(site, look, now), filled, is_elsewhere)

    # Both.

    def _visit(self, visitor: SlotVisitor, now: datetime, seen: BannerKeys) -> SlotVisit:
        new_id, user_id, second = self._new_id(), visitor.user_id, int(now.timestamp())
        request_id = new_id.bytes
        user = b"" if user_id is None else b"?u=" + self._seal_user(request_id, user_id.bytes)
        return SlotVisit(
            visitor.http,
            visitor.overrides,
            self._parse_context,
            now,
            second,
            request_id,
            str(new_id).encode(),
            self._stamp.format(now, second),
            user_id,
            seen,
            user,
        )

    def _when_seen(
        self,
        user_id: UUID,
        slots: list[Slot],
        url: NormalizedUrl,
        answer: Callable[[BannerKeys], FastAnswer],
    ) -> FastAnswer | DeferredAnswer:
        """Answer at once, or when it is known what the visitor has seen, where a candidate has a frequency cap."""
        assert self._frequency is not None, "else everybody is answered at once"
        index = self._index()
        capped = self.find_capped(index, slots, url)
        if not capped:
            return answer(NO_BANNERS)
        return self._frequency.answer_knowing(user_id, capped, index, answer)

    def find_capped(self, index: Index, slots: Iterable[Slot], url: NormalizedUrl) -> MarketPlacements:
        """Return the creatives with a frequency cap that could fill slots of a page."""
        now = self._now()
        capped: dict[int, IndexedPlacement] = {}
        for slot, site in slots:
            candidates = self._known.find_shortlists(site).find(url.text, slot.slug.decode(), now)
            capped |= {own.key: own for own in self._auctions.find_capped(index, candidates)}
        return tuple(capped.values())

    def _fill(self, asked: AskedPage, slot: Slot, number: int, on_page: Collection[int]) -> FilledSlot | str:
        """Fill a slot, or return the name of what keeps it empty."""
        (placement, site), look, visit = slot, asked.look, asked.visit
        filled: FilledSlot | str | None = find_obstacle(site, look.state)
        if filled is None:
            assert look.entry is not None, "a known page"
            prepared = self._prepared.get(asked.index, placement, site, look.entry, look.listed)
            if prepared.ready:
                visit.is_free = not self._may_hold(visit, site)
            filled = self._auctions.hold(prepared, visit, number, on_page)
            if self._count_page is not None:
                self._count_page(placement.key, look.entry.url, is_filled=isinstance(filled, FilledSlot))
        if self._count_traffic is not None:
            self._count_traffic(placement.key, isinstance(filled, FilledSlot))
        if isinstance(filled, FilledSlot):
            self.served += 1
        else:
            self.unfilled[filled] = self.unfilled.get(filled, 0) + 1
        return filled

    def _may_hold(self, visit: SlotVisit, site: IndexedSite) -> bool:
        """Whether an offer holds and costs something: nothing is billed that is not asked for by a page of the site."""
        http = visit.http
        if http.method == b"HEAD":
            return False
        if self._page_check is not None:
            values = http.first_values or index_headers(http.headers)
            if self._page_check.judge(site.domain, values) is PageOrigin.OTHER:
                return False
        return self._senders.may_hold(http, 1, visit.second)


def _build_no_ad(state: PageState, reason: str) -> FastAnswer:
    return FastAnswer(
        encode_head(
            HTTPStatus.NO_CONTENT,
            None,
            (b"cache-control", b"no-store"),
            (b"adloom-page", state.value.encode()),
            (b"adloom-reason", reason.encode()),
            (b"access-control-expose-headers", b"adloom-page, adloom-reason"),
        )
    )
