"""Answers contextual slots over HTTP: one slot, or all slots of a page.

What is known of the page decides which ads may be shown; the answer of a page that is not known asks the tag for its
text. An answer waits only where it depends on what the visitor has seen.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Final, Protocol
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError, wrong_field
from adloom.core.ids import NO_USER, IdSource, OpaqueId, SiteId
from adloom.events.ingest.ivt.pages import PageCheck, PageOrigin
from adloom.market.shortlist.table import NO_SHORTLISTS, ShortlistTable
from adloom.pages.follow.page_table import PageState, PageTable
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
from adloom.serving.contextual.fill import FilledSlot, SlotFiller, SlotRequest, add_ancestors
from adloom.serving.contextual.page_host import SiteHostMismatchError, parse_page_url
from adloom.serving.contextual.recent_texts import RecentTexts
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
ASK_AGAIN: Final = timedelta(hours=1)  # Where no text would be taken now.
_MILLISECOND: Final = timedelta(milliseconds=1)

_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
SERVED_HEAD: Final = encode_head(HTTPStatus.OK, b"application/json", *_HEADERS)
NO_SUCH_PLACEMENT: Final = problem_answer(
    PlacementNotFoundError("No active contextual placement has this slug.")
)
OTHER_SITE: Final = problem_answer(SiteHostMismatchError("This slot is of another site than the page."))
WRONG_HOST: Final = "The host of `url` is not one of the site's."
NO_AD: Final = b"null"

PAGE_UNKNOWN: Final = "page_unknown"
PAGE_STALE: Final = "page_stale"
SITE_SUSPENDED: Final = "site_suspended"
WARMUP: Final = "warmup"

Slot = tuple[IndexedPlacement, IndexedSite]


class SlotsRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The contextual slots of a page."""

    url: str
    slots: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=100)]],
        msgspec.Meta(min_length=1, max_length=SLOTS_MAX),
    ]
    user_id: UUID | None = None
    context: dict[str, Any] = {}


class PageTables(Protocol):
    """The pages of sites that are in memory."""

    def find(self, site_id: SiteId) -> PageTable | None: ...


class ShortlistTables(Protocol):
    """The shortlists of sites that are in memory."""

    def find(self, site_id: SiteId) -> ShortlistTable | None: ...


class PageLook(msgspec.Struct, frozen=True, gc=False):
    """What is known of the page that asks."""

    url: NormalizedUrl
    state: PageState
    categories: frozenset[str]
    shortlists: ShortlistTable


class SlotVisitor(msgspec.Struct, frozen=True, gc=False):
    """Who asks, as far as the request says so."""

    http: FastRequest
    overrides: Overrides
    user_id: UUID | None


class AskedPage(msgspec.Struct, frozen=True, gc=False):
    """A page whose slots are filled, from one index and at one moment."""

    visitor: SlotVisitor
    index: Index
    look: PageLook
    now: datetime
    seen: BannerKeys
    request_id: OpaqueId


class FilledPage(msgspec.Struct, frozen=True, gc=False):
    """The slots of a page: each has an ad, the name of what keeps it empty, or a problem."""

    asked: AskedPage
    wanted_in: timedelta  # The page's text; now, if that is not after zero.
    slots: Mapping[bytes, FilledSlot | str | FastAnswer]


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
        filler: SlotFiller,
        seal_user: Callable[[bytes, bytes], bytes],
        contexts: ContextParser | None = None,
        senders: SenderCheck | None = None,
        frequency: DirectFrequency | None = None,
        page_check: PageCheck | None = None,
        count_traffic: CountTraffic | None = None,
    ) -> None:
        self._index = index
        self._pages = pages
        self._page_check = page_check
        self._shortlists = shortlists
        self._now = clock.now
        self._new_id = ids.new_opaque
        self._recent = recent
        self._filler = filler
        self._seal_user = seal_user
        self._parse_context = (contexts or ContextParser()).parse
        self._senders = senders or TrustingCheck()
        self._frequency = frequency
        self._count_traffic = count_traffic
        self._stamp = MillisecondStamp()
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
        asked = _parse_query(request.query)
        url = parse_page_url(_require(asked, "url"))
        slot = self._index().find_slot(_require(asked, "slot").encode())
        if slot is None:
            return NO_SUCH_PLACEMENT
        if not slot[1].has_host(url.host):
            raise SiteHostMismatchError(WRONG_HOST)
        overrides = parse_overrides(asked)
        visitor = SlotVisitor(request, overrides, overrides.user_id)
        return self._when_seen(
            visitor, [slot], url, lambda seen: self._serve(visitor, slot[0].slug, url, seen)
        )

    def _serve(self, visitor: SlotVisitor, slug: bytes, url: NormalizedUrl, seen: BannerKeys) -> FastAnswer:
        index, now = self._index(), self._now()
        slot = index.find_slot(slug)
        if slot is None:
            return NO_SUCH_PLACEMENT
        look = self._look_at(slot[1], url, now)
        self.asked[look.state.value] += 1
        filled = self._fill(AskedPage(visitor, index, look, now, seen, self._new_id()), slot, 0, set())
        if isinstance(filled, FilledSlot):
            return FastAnswer(SERVED_HEAD, filled.body)
        known = self._no_ad.get((look.state, filled))
        if known is None:
            known = self._no_ad[look.state, filled] = FastAnswer(
                encode_head(
                    HTTPStatus.NO_CONTENT,
                    None,
                    (b"cache-control", b"no-store"),
                    (b"adloom-page", look.state.value.encode()),
                    (b"adloom-reason", filled.encode()),
                    (b"access-control-expose-headers", b"adloom-page, adloom-reason"),
                )
            )
        return known

    # All slots of a page.

    def serve_batch(self, request: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer `POST /v1/serve/batch`; a slug named twice is answered once."""
        asked = _bodies.decode(request.body)
        overrides = parse_overrides(asked.context, within="context.")
        url, index = parse_page_url(asked.url), self._index()
        slugs = tuple(dict.fromkeys(slug.encode() for slug in asked.slots))
        slots = [slot for slot in map(index.find_slot, slugs) if slot is not None]
        if slots and not any(site.has_host(url.host) for _, site in slots):
            raise SiteHostMismatchError(WRONG_HOST)
        visitor = SlotVisitor(request, overrides, asked.user_id or overrides.user_id)
        return self._when_seen(visitor, slots, url, lambda seen: self._serve_batch(visitor, slugs, url, seen))

    def _serve_batch(
        self, visitor: SlotVisitor, slugs: tuple[bytes, ...], url: NormalizedUrl, seen: BannerKeys
    ) -> FastAnswer:
        page = self.fill_page(visitor, slugs, url, seen, set())
        answers = [
            b"%b:%b" % (msgspec.json.encode(slug.decode()), NO_AD if isinstance(filled, str) else filled.body)
            for slug, filled in page.slots.items()
        ]
        now = page.asked.now
        body = b'{"page":"%b","reclassifyInMs":%d,"slots":{%b},"requestId":"%b","servedAt":"%b"}' % (
            page.asked.look.state.value.encode(),
            page.wanted_in // _MILLISECOND,
            b",".join(answers),
            str(page.asked.request_id).encode(),
            self._stamp.format(now, int(now.timestamp())),
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
        look = self._look_at(site, url, now)
        self.asked[look.state.value] += 1
        asked = AskedPage(visitor, index, look, now, seen, self._new_id())
        filled: dict[bytes, FilledSlot | str | FastAnswer] = {}
        for number, (slug, slot) in enumerate(found.items()):
            if slot is None:
                filled[slug] = NO_SUCH_PLACEMENT
            elif slot[1] is not site:
                filled[slug] = OTHER_SITE
            else:
                filled[slug] = self._fill(asked, slot, number, on_page)
        return FilledPage(asked, self._find_wait(site, url, now), filled)

    # Both.

    def _when_seen(
        self,
        visitor: SlotVisitor,
        slots: list[Slot],
        url: NormalizedUrl,
        answer: Callable[[BannerKeys], FastAnswer],
    ) -> FastAnswer | DeferredAnswer:
        """Answer at once, or when it is known what the visitor has seen, where a candidate has a frequency cap."""
        user_id = visitor.user_id
        if user_id is None or user_id == NO_USER or self._frequency is None:
            return answer(NO_BANNERS)
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
            candidates = self._find_shortlists(site).find(url.text, slot.slug.decode(), now)
            capped |= {own.key: own for own in self._filler.find_capped(index, candidates)}
        return tuple(capped.values())

    def _fill(self, asked: AskedPage, slot: Slot, number: int, on_page: set[int]) -> FilledSlot | str:
        """Fill a slot, or return the name of what keeps it empty."""
        filled = find_obstacle(slot[1], asked.look.state) or self._offer(asked, slot, number, on_page)
        if self._count_traffic is not None:
            self._count_traffic(slot[1].key, isinstance(filled, FilledSlot))
        if isinstance(filled, FilledSlot):
            self.served += 1
            on_page |= {filled.banner_key, -filled.campaign_key}
        else:
            self.unfilled[filled] = self.unfilled.get(filled, 0) + 1
        return filled

    def _offer(self, asked: AskedPage, slot: Slot, number: int, on_page: set[int]) -> FilledSlot | str:
        placement, site = slot
        visitor, look, now = asked.visitor, asked.look, asked.now
        listed = look.shortlists.pages.get(look.url.text)
        second, user_id = int(now.timestamp()), visitor.user_id
        candidates = look.shortlists.find(look.url.text, placement.slug.decode(), now)
        is_counted = bool(candidates) and visitor.http.method != b"HEAD"
        user = b"" if user_id is None else b"?u=" + self._seal_user(asked.request_id.bytes, user_id.bytes)
        request = SlotRequest(
            index=asked.index,
            slot=placement,
            site=site,
            categories=look.categories,
            candidates=candidates,
            version=0 if listed is None else listed.version,
            context=visitor.overrides.apply_to(self._parse_context(visitor.http, placement.zone, now)),
            now=now,
            second=second,
            seen=asked.seen,
            user=user,
            is_free=not (
                is_counted
                and self._is_on_site(visitor.http, site)
                and self._senders.may_hold(visitor.http, 1, second)
            ),
        )
        return self._filler.fill(request, asked.request_id, number, on_page)

    def _is_on_site(self, http: FastRequest, site: IndexedSite) -> bool:
        """Whether the request may come from a page of the site: elsewhere nothing is billed, so nothing is held."""
        if self._page_check is None:
            return True
        values = http.first_values or index_headers(http.headers)
        return self._page_check.judge(site.domain, values) is not PageOrigin.OTHER

    def _look_at(self, site: IndexedSite | None, url: NormalizedUrl, now: datetime) -> PageLook:
        table = None if site is None else self._pages.find(site.id)
        if site is None or table is None:
            return PageLook(url, PageState.UNKNOWN, frozenset(), NO_SHORTLISTS)
        entry = table.entries.get(url.text)
        ids = () if entry is None else tuple(one.id for one in entry.categories)
        return PageLook(url, table.find_state(url.text, now), add_ancestors(ids), self._find_shortlists(site))

    def _find_shortlists(self, site: IndexedSite) -> ShortlistTable:
        return self._shortlists.find(site.id) or NO_SHORTLISTS

    def _find_wait(self, site: IndexedSite | None, url: NormalizedUrl, now: datetime) -> timedelta:
        """Return when a page's text is wanted: now, if that is not after zero."""
        if site is None:
            return ASK_AGAIN
        table = self._pages.find(site.id)
        entry = None if table is None else table.entries.get(url.text)
        expires_in = timedelta(0) if entry is None or entry.expires_at is None else entry.expires_at - now
        if table is not None and table.find_state(url.text, now) is PageState.KNOWN:
            return expires_in
        if not site.is_verified:
            return ASK_AGAIN
        return self._recent.find_wait(site.id, url.text, now) or min(expires_in, timedelta(0))


def find_obstacle(site: IndexedSite, state: PageState) -> str | None:
    """Return what keeps all ads from a page."""
    if site.is_suspended:
        return SITE_SUSPENDED
    if state is PageState.UNKNOWN:
        return PAGE_UNKNOWN
    if state is PageState.STALE:
        return PAGE_STALE
    return WARMUP if site.is_warming_up else None


def _parse_query(query: bytes) -> dict[str, str]:
    """Parse a query; of a repeated parameter the first counts."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    return dict(reversed(pairs))


def _require(asked: Mapping[str, str], name: str) -> str:
    value = asked.get(name)
    if not value:
        raise wrong_field(name, "is required")
    return value
