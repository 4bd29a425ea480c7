"""Answers contextual slots over HTTP: one slot, or all slots of a page.

What is known of the page decides which ads may be shown; the answer of a page that is not known asks the tag for its
text. An answer waits only where it depends on what the visitor has seen.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, Protocol
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import NO_USER, IdSource
from adloom.events.ingest.ivt.pages import PageCheck, PageOrigin
from adloom.pages.follow.page_table import PageState
from adloom.pages.url import NormalizedUrl
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    index_headers,
    make_problem_answer,
)
from adloom.serving.contextual.batch_question import NO_OVERRIDES, BatchQueries, QueriedSlots
from adloom.serving.contextual.fill import FilledSlot
from adloom.serving.contextual.page_host import SiteHostMismatchError
from adloom.serving.contextual.page_lookup import (
    FoundPage,
    KnownPages,
    PageTables,
    PlannedSlots,
    PreparedPage,
    ShortlistTables,
    answer_no_ad,
    find_obstacle,
    plan_slots,
)
from adloom.serving.contextual.prepare import PreparedSlot, PreparedSlots
from adloom.serving.contextual.question import QUERIES_MAX, WRONG_HOST, QueriedSlot, SlotQueries
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
from adloom.serving.request.overrides import Overrides
from adloom.serving.request.sender_limits import SenderCheck, TrustingCheck

SERVE_PATH: Final = b"/v1/serve"
BATCH_PATH: Final = b"/v1/serve/batch"
_MILLISECOND: Final = timedelta(milliseconds=1)

_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
SERVED_HEAD: Final = encode_head(HTTPStatus.OK, b"application/json", *_HEADERS)
NO_SUCH_PLACEMENT: Final = make_problem_answer(
    PlacementNotFoundError("No active contextual placement has this slug.")
)
OTHER_SITE: Final = make_problem_answer(SiteHostMismatchError("This slot is of another site than the page."))
NO_AD: Final = b"null"

Slot = tuple[IndexedPlacement, IndexedSite]
SlotPlan = PreparedSlot | str | FastAnswer  # What fills it, what keeps all ads from its page, or a problem.
PageKey = tuple[str, tuple[bytes, ...]]  # Address and slots.


class CountPage(Protocol):
    """Counts a request of a slot, by its placement's key and the page's URL."""

    def __call__(self, placement_key: int, url: str, *, is_filled: bool) -> None: ...


class SlotVisitor(msgspec.Struct, frozen=True, gc=False):
    """Who asks, as far as the request says so."""

    http: FastRequest
    overrides: Overrides
    user_id: UUID | None


class FilledPage(msgspec.Struct, frozen=True, gc=False):
    """The slots of a page, as they were asked for: each has an ad, the name of what keeps it empty, or a problem."""

    look: FoundPage
    visit: SlotVisit
    wanted_in: timedelta  # The page's text; now, if that is not after zero.
    slots: Sequence[FilledSlot | str | FastAnswer]
    is_elsewhere: bool  # Of none of the sites that the slots are of.


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
        self._new_id = ids.make_opaque
        self._auctions = auctions
        self._hold_auctions = auctions.hold
        self._seal_user = seal_user
        self._parse_context = (contexts or ContextParser()).parse
        self._senders = senders or TrustingCheck()
        self._frequency = frequency
        self._count_traffic = count_traffic
        self._count_page = count_page
        self._stamp = MillisecondStamp()
        self._queries = SlotQueries()
        self._batches = BatchQueries()
        self._pages: dict[PageKey, PreparedPage] = {}
        self._prepared = PreparedSlots()
        # Plain counters, read by the metrics.
        self.asked = {state.value: 0 for state in PageState}
        self.served = 0
        self.unfilled: dict[str, int] = {}

    def list_routes(self) -> list[FastRoute]:
        return [
            FastRoute(b"GET", SERVE_PATH, is_prefix=False, handler=self.serve, is_batched=True),
            FastRoute(b"POST", BATCH_PATH, is_prefix=False, handler=self.serve_batch, is_batched=True),
        ]

    # One slot.

    def serve(self, request: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer `GET /v1/serve`."""
        question = self._queries.find(request.query) or self._queries.parse(request.query)
        user_id = question.user_id
        if user_id is None or user_id == NO_USER or self._frequency is None:
            return self._serve(request, question, NO_BANNERS)
        slot = self._index().find_slot(question.slug)
        if slot is None:
            return NO_SUCH_PLACEMENT
        question.check_host(slot[1])
        return self._answer_knowing(
            user_id, [slot], question.url, lambda seen: self._serve(request, question, seen)
        )

    def _serve(self, http: FastRequest, question: QueriedSlot, seen: BannerKeys) -> FastAnswer:
        index, now, known = self._index(), self._now(), question.known
        if known is not None and self._known.holds(known, index, now):
            look, planned = known.look, known
        else:
            slot = index.find_slot(question.slug)
            if slot is None:
                return NO_SUCH_PLACEMENT
            question.check_host(slot[1])
            look = self._known.find_page(slot[1], question.url, now)
            plan = self._plan(index, slot, look)
            if isinstance(plan, str):
                question.known = None
                self.asked[look.state] += 1
                return answer_no_ad(look.state, self._leave_empty(slot[0], plan))
            planned = plan_slots((plan,))
            question.known = self._known.prepare(planned, slot[1], look)
        self.asked[look.state] += 1
        # The context's parser reads the query.
        visit = self._visit(http, NO_OVERRIDES, question.user_id, now, seen)
        filled = self._hold(planned, visit, set())[0]
        if isinstance(filled, str):
            return answer_no_ad(look.state, filled)
        return FastAnswer(SERVED_HEAD, b"".join(filled.parts))

    # All slots of a page.

    def serve_batch(self, request: FastRequest) -> FastAnswer | DeferredAnswer:
        """Answer `POST /v1/serve/batch`; a slug named twice is answered once."""
        asked = self._batches.parse(request.body)
        url, user_id = asked.url, asked.user_id
        visitor = SlotVisitor(request, asked.overrides, user_id)
        if user_id is None or user_id == NO_USER or self._frequency is None:
            return self._serve_batch(visitor, asked, NO_BANNERS)
        slots = [slot for slot in map(self._index().find_slot, asked.slugs) if slot is not None]
        if slots and not any(site.has_host(url.host) for _, site in slots):
            raise SiteHostMismatchError(WRONG_HOST)
        return self._answer_knowing(user_id, slots, url, lambda seen: self._serve_batch(visitor, asked, seen))

    def _serve_batch(self, visitor: SlotVisitor, asked: QueriedSlots, seen: BannerKeys) -> FastAnswer:
        page = self.fill_page(visitor, asked.slugs, asked.url, seen, set())
        if page.is_elsewhere:
            raise SiteHostMismatchError(WRONG_HOST)
        look, visit = page.look, page.visit
        # One join: formatting would copy every ad three times.
        parts = [
            b'{"page":"%b","reclassifyInMs":%d,"slots":{'
            % (look.state.encode(), page.wanted_in // _MILLISECOND)
        ]
        for name, filled in zip(asked.names, page.slots, strict=True):
            parts.append(name)
            if isinstance(filled, FilledSlot):
                parts += filled.parts
            else:
                parts.append(NO_AD if isinstance(filled, str) else filled.body)
        parts += (b'},"requestId":"', visit.request_text, b'","servedAt":"', visit.served_at, b'"}')
        return FastAnswer(SERVED_HEAD, b"".join(parts))

    def fill_page(
        self,
        visitor: SlotVisitor,
        slugs: Sequence[bytes],
        url: NormalizedUrl,
        seen: BannerKeys,
        on_page: set[int],
    ) -> FilledPage:
        """Fill the slots of a page, without what is on it already: banners by key, campaigns by negative key."""
        index, now, key = self._index(), self._now(), (url.text, tuple(slugs))
        visit = self._visit(visitor.http, visitor.overrides, visitor.user_id, now, seen)
        known, is_elsewhere = self._pages.get(key), False
        filled: Sequence[FilledSlot | str | FastAnswer]
        if known is not None and self._known.holds(known, index, now):
            site, look = known.site, known.look
            filled = self._hold(known, visit, on_page)
        else:
            site, look, plans = self._plan_page(index, key, url, now)
            is_elsewhere = site is None and OTHER_SITE in plans
            filled = self._fill_plans(index, key[1], plans, visit, on_page)
        self.asked[look.state] += 1
        return FilledPage(look, visit, self._known.find_wait(site, look, now), filled, is_elsewhere)

    def _fill_plans(
        self,
        index: Index,
        slugs: Sequence[bytes],
        plans: Sequence[SlotPlan],
        visit: SlotVisit,
        on_page: set[int],
    ) -> list[FilledSlot | str | FastAnswer]:
        """Fill the slots that have a plan, in their order."""
        held = iter(self._hold(plan_slots(plans), visit, on_page))
        filled: list[FilledSlot | str | FastAnswer] = []
        for slug, plan in zip(slugs, plans, strict=True):
            if isinstance(plan, PreparedSlot):
                filled.append(next(held))
            else:
                filled.append(self._leave_empty(index.by_slug[slug], plan) if isinstance(plan, str) else plan)
        return filled

    def _plan_page(
        self, index: Index, key: PageKey, url: NormalizedUrl, now: datetime
    ) -> tuple[IndexedSite | None, FoundPage, Sequence[SlotPlan]]:
        """Find the site of a page, what is known of it, and what may fill each slot; that is kept if all have a plan."""
        self._pages.pop(key, None)
        found = [index.find_slot(slug) for slug in key[1]]
        site = next((slot[1] for slot in found if slot and slot[1].has_host(url.host)), None)
        if site is None:
            look = FoundPage(url, PageState.UNKNOWN)
            return None, look, [NO_SUCH_PLACEMENT if slot is None else OTHER_SITE for slot in found]
        look = self._known.find_page(site, url, now)
        plans: list[SlotPlan] = []
        for slot in found:
            if slot is None:
                plans.append(NO_SUCH_PLACEMENT)
            else:
                plans.append(self._plan(index, slot, look) if slot[1] is site else OTHER_SITE)
        planned = plan_slots(plans)
        known = self._known.prepare(planned, site, look)
        if known is not None and len(planned.slots) == len(plans):
            if len(self._pages) >= QUERIES_MAX:
                self._pages.clear()
            self._pages[key] = known
        return site, look, plans

    # Both.

    def _visit(
        self,
        http: FastRequest,
        overrides: Overrides,
        user_id: UUID | None,
        now: datetime,
        seen: BannerKeys,
    ) -> SlotVisit:
        new_id, second = self._new_id(), self._stamp.find_second(now)
        request_id = new_id.bytes
        user = b"" if user_id is None else b"?u=" + self._seal_user(request_id, user_id.bytes)
        return SlotVisit(
            http,
            overrides,
            self._parse_context,
            now,
            second,
            request_id,
            str(new_id).encode(),
            self._stamp.format(now, second),
            second + now.microsecond / 1e6,
            user_id,
            seen,
            user,
        )

    def _answer_knowing(
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

    def _plan(self, index: Index, slot: Slot, look: FoundPage) -> PreparedSlot | str:
        """Return what may fill a slot, or the name of what keeps all ads from its page."""
        placement, site = slot
        obstacle = find_obstacle(site, look.state)
        if obstacle is not None:
            return obstacle
        assert look.entry is not None, "a known page"
        return self._prepared.get(index, placement, site, look.entry, look.listed)

    def _hold(self, planned: PlannedSlots, visit: SlotVisit, on_page: set[int]) -> list[FilledSlot | str]:
        """Fill slots of a page; each has the name of what keeps it empty, if something does."""
        if planned.offers:
            self._judge_sender(visit, planned)
        filled = self._hold_auctions(planned, visit, on_page)
        unfilled, served = self.unfilled, self.served
        for one in filled:
            if isinstance(one, str):
                unfilled[one] = unfilled.get(one, 0) + 1
            else:
                self.served += 1
        unmade = planned.offers - self.served + served
        if unmade and not (visit.is_free or visit.is_unheld):
            self._senders.give_back(visit.http, unmade, visit.second)
        if self._count_page is not None or self._count_traffic is not None:
            self._count(planned, filled)
        return filled

    def _count(self, planned: PlannedSlots, filled: Sequence[FilledSlot | str]) -> None:
        for plan, one in zip(planned.slots, filled, strict=True):
            is_filled = type(one) is FilledSlot
            if self._count_page is not None:
                self._count_page(plan.slot.key, plan.entry.url, is_filled=is_filled)
            if self._count_traffic is not None:
                self._count_traffic(plan.slot.key, is_filled)

    def _leave_empty(self, placement: IndexedPlacement, reason: str) -> str:
        """Count a slot that its page keeps empty, and return the name of that."""
        if self._count_traffic is not None:
            self._count_traffic(placement.key, False)  # noqa: FBT003 - it is not filled
        self.unfilled[reason] = self.unfilled.get(reason, 0) + 1
        return reason

    def _judge_sender(self, visit: SlotVisit, planned: PlannedSlots) -> None:
        """Note what offers hold and cost: nothing is billed that is not asked for by a page of the site."""
        http = visit.http
        if http.method == b"HEAD":
            visit.is_free = True
            return
        if self._page_check is not None:
            values = http.first_values or index_headers(http.headers)
            if self._page_check.judge(planned.slots[0].site.domain, values) is PageOrigin.OTHER:
                visit.is_free = True
                return
        if not self._senders.may_hold(http, planned.offers, visit.second):
            visit.is_free = self._senders.is_doubtful(http)
            visit.is_unheld = not visit.is_free
