"""Answers the contextual slots of a page: what is known of the page, and what fills each slot.

Nothing is sold yet, so every slot is empty; the page's own answer is real, and asks the tag for text.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Final, Protocol
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import IdSource, SiteId
from adloom.pages.follow.page_table import PageState, PageTable
from adloom.pages.url import NormalizedUrl
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import (
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    problem_answer,
)
from adloom.serving.contextual.page_host import SiteHostMismatchError, parse_page_url
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.direct.encode import MillisecondStamp
from adloom.serving.index.index import Index
from adloom.serving.index.site import IndexedSite

BATCH_PATH: Final = b"/v1/serve/batch"
SLOTS_MAX: Final = 20
ASK_AGAIN: Final = timedelta(hours=1)  # Where no text would be taken now.
_MILLISECOND: Final = timedelta(milliseconds=1)

SERVED_HEAD: Final = encode_head(
    HTTPStatus.OK,
    b"application/json",
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
NO_SUCH_SLOT: Final = problem_answer(
    PlacementNotFoundError("No active contextual placement has this slug.")
).body
OTHER_SITE: Final = problem_answer(SiteHostMismatchError("This slot is of another site than the page.")).body
NO_AD: Final = b"null"


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


_bodies: Final = BodyDecoder(SlotsRequest)


class SlotRoutes:
    """Answers `POST /v1/serve/batch`."""

    def __init__(
        self,
        index: Callable[[], Index],
        pages: PageTables,
        clock: Clock,
        ids: IdSource,
        *,
        recent: RecentTexts,
    ) -> None:
        self._index = index
        self._pages = pages
        self._now = clock.now
        self._new_id = ids.new_opaque
        self._recent = recent
        self._stamp = MillisecondStamp()
        # A plain counter, read by the metrics.
        self.asked = {state.value: 0 for state in PageState}

    def routes(self) -> list[FastRoute]:
        return [FastRoute(b"POST", BATCH_PATH, is_prefix=False, handler=self.serve)]

    def serve(self, request: FastRequest) -> FastAnswer:
        """Answer every slot of a page; a slug named twice is answered once."""
        asked = _bodies.decode(request.body)
        url, now, index = parse_page_url(asked.url), self._now(), self._index()
        found = {slug: index.find_slot(slug.encode()) for slug in asked.slots}
        sites = [slot[1] for slot in found.values() if slot is not None]
        site = next((one for one in sites if one.has_host(url.host)), None)
        if sites and site is None:
            raise SiteHostMismatchError("The host of `url` is not one of the site's.")
        state, wait = self._look_at_page(site, url, now)
        self.asked[state.value] += 1
        answers: list[bytes] = []
        for slug, slot in found.items():
            answer = NO_SUCH_SLOT if slot is None else NO_AD if slot[1] is site else OTHER_SITE
            answers.append(b"%b:%b" % (msgspec.json.encode(slug), answer))
        body = b'{"page":"%b","reclassifyInMs":%d,"slots":{%b},"requestId":"%b","servedAt":"%b"}' % (
            state.value.encode(),
            wait // _MILLISECOND,
            b",".join(answers),
            str(self._new_id()).encode(),
            self._stamp.format(now, int(now.timestamp())),
        )
        return FastAnswer(SERVED_HEAD, body)

    def _look_at_page(
        self, site: IndexedSite | None, url: NormalizedUrl, now: datetime
    ) -> tuple[PageState, timedelta]:
        """Return what is known of a page, and when its text is wanted: now, if that is not after zero."""
        if site is None:
            return PageState.UNKNOWN, ASK_AGAIN
        table = self._pages.find(site.id)
        state = PageState.UNKNOWN if table is None else table.find_state(url.text, now)
        entry = None if table is None else table.entries.get(url.text)
        expires_in = timedelta(0) if entry is None or entry.expires_at is None else entry.expires_at - now
        if state is PageState.KNOWN:
            return state, expires_in
        if not site.is_verified:
            return state, ASK_AGAIN
        return state, self._recent.find_wait(site.id, url.text, now) or min(expires_in, timedelta(0))
