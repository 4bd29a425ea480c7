"""Takes the text of a page from its reader's browser, and puts it on the queue of pages to classify.

Only a page of a verified site can say what it is about, and only about itself. It costs the site nothing else: what
is taken here moves neither money nor figures. One text of a page is taken at a time, over all processes.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from http import HTTPStatus
from time import monotonic
from typing import Annotated, Final, Protocol

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import RateLimitedError, make_field_error
from adloom.core.ids import SiteId
from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.pages.classify.queue import PutResult
from adloom.pages.classify.request import ClassifyRequest, make_request
from adloom.pages.follow.page_table import PageState, PageTable
from adloom.pages.model import PageSource
from adloom.pages.url import NormalizedUrl
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoute, encode_head
from adloom.serving.contextual.page_host import SiteHostMismatchError, find_sender_host, parse_page_url
from adloom.serving.contextual.recent_texts import WAIT, RecentTexts
from adloom.serving.index.index import Index
from adloom.serving.index.site import IndexedSite

CLASSIFY_PATH: Final = b"/v1/classify-page"
BODY_BYTES_MAX: Final = 96 * 1024
TEXT_BYTES_MAX: Final = 64 * 1024
PENDING_MAX: Final = 100  # Texts that wait for Valkey: a few megabytes.
LOAD_SECONDS_MAX: Final = 1.0  # For the pages of a site that this process has not read yet.
QUEUE_FULL_SECONDS: Final = 30

_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
ACCEPTED: Final = FastAnswer(
    encode_head(HTTPStatus.ACCEPTED, b"application/json", *_HEADERS), b'{"accepted":true}'
)
FRESH: Final = FastAnswer(
    encode_head(HTTPStatus.OK, b"application/json", *_HEADERS), b'{"accepted":false,"reason":"fresh"}'
)
QUEUED: Final = FastAnswer(
    encode_head(HTTPStatus.OK, b"application/json", *_HEADERS), b'{"accepted":false,"reason":"queued"}'
)


class SentText(msgspec.Struct, frozen=True):
    """What a page says, as its reader's browser sends it."""

    url: str
    text: Annotated[str, msgspec.Meta(min_length=1)]
    title: str | None = None
    language: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8}){0,4}$")] | None = (
        None
    )


class PagesOfSites(Protocol):
    """The pages of sites, as far as this process has them."""

    async def wait_for(self, site_id: SiteId, *, seconds_max: float) -> PageTable | None: ...


class TextQueue(Protocol):
    """Where texts go."""

    async def put_once(self, request: ClassifyRequest, *, lifetime: timedelta) -> PutResult:
        """Put a request, unless one of its page waits already."""
        ...


class ClassifyPageRoutes:
    """Answers `POST /v1/classify-page`."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        index: Callable[[], Index],
        pages: PagesOfSites,
        queue: TextQueue,
        clock: Clock,
        *,
        recent: RecentTexts,
        find_rate_key: Callable[[FastRequest], bytes | None],
        site_counts: MinuteCounts,
        address_counts: MinuteCounts,
    ) -> None:
        self._index = index
        self._pages = pages
        self._queue = queue
        self._now = clock.now
        self._recent = recent
        self._find_rate_key = find_rate_key
        self._site_counts = site_counts
        self._address_counts = address_counts
        self._pending: set[asyncio.Future[FastAnswer]] = set()
        # Plain counters, read by the metrics.
        self.outcomes = {"accepted": 0, "fresh": 0, "queued": 0, "wrong_host": 0, "limited": 0}

    def list_routes(self) -> list[FastRoute]:
        return [
            FastRoute(
                b"POST",
                CLASSIFY_PATH,
                is_prefix=False,
                handler=self.classify,
                body_bytes_max=BODY_BYTES_MAX,
            )
        ]

    def classify(self, request: FastRequest) -> asyncio.Future[FastAnswer]:
        """Check what a browser sends, and take it without waiting for its classification."""
        self._check_address(request)
        page = _bodies.decode(request.body)
        if len(page.text) > TEXT_BYTES_MAX or len(page.text.encode()) > TEXT_BYTES_MAX:
            raise make_field_error("text", f"must have at most {TEXT_BYTES_MAX // 1024} KiB")
        if page.text.isspace():
            raise make_field_error("text", "must have a word")
        url = parse_page_url(page.url)
        # A host is of its own pages only: what is below a domain may belong to others than the domain.
        sites = [site for site in self._index().sites.find_by_host(url.host) if site.is_verified]
        if not sites or find_sender_host(request) != url.host:
            self.outcomes["wrong_host"] += 1
            raise SiteHostMismatchError(
                "Texts are taken from pages of verified sites only, and from each page for itself: the Origin "
                "(or Referer) must be of the page's host."
            )
        if len(self._pending) >= PENDING_MAX:
            raise self._build_rate_error("Too many texts wait here. Try again later.", QUEUE_FULL_SECONDS)
        taking = asyncio.ensure_future(self._take(sites, url, page))
        self._pending.add(taking)
        taking.add_done_callback(self._pending.discard)
        return taking

    async def _take(self, sites: Sequence[IndexedSite], url: NormalizedUrl, page: SentText) -> FastAnswer:
        wanted = [site for site in sites if not await self._is_fresh(site, url)]
        if not wanted:
            self.outcomes["fresh"] += 1
            return FRESH
        taken = [site for site in wanted if await self._put(site, url, page)]
        self.outcomes["accepted" if taken else "queued"] += 1
        return ACCEPTED if taken else QUEUED

    async def _is_fresh(self, site: IndexedSite, url: NormalizedUrl) -> bool:
        table = await self._pages.wait_for(site.id, seconds_max=LOAD_SECONDS_MAX)
        return table is not None and table.find_state(url.text, self._now()) is PageState.KNOWN

    async def _put(self, site: IndexedSite, url: NormalizedUrl, page: SentText) -> bool:
        """Put the text on the queue; False where another text of the page is there already."""
        now = self._now()
        if self._recent.find_wait(site.id, url.text, now) is not None:
            return False
        count, second = self._site_counts.find(site.id.bytes), monotonic()
        if count.exceeds(second):
            raise self._build_rate_error(
                "Too many texts of this site. Try again later.", count.find_wait(second)
            )
        language = None if page.language is None else page.language.replace("_", "-").partition("-")[0]
        request = make_request(
            site_id=site.id,
            url=url.text,
            source=PageSource.TAG,
            now=now,
            title=page.title,
            text=page.text,
            language=language and language.lower(),
        )
        result = await self._queue.put_once(request, lifetime=WAIT)
        if result is PutResult.FULL:
            raise self._build_rate_error(
                "Too many pages wait to be classified. Try again later.", QUEUE_FULL_SECONDS
            )
        if result is PutResult.PUT:
            self._recent.add(site.id, url.text, now)
        return result is PutResult.PUT

    def _check_address(self, request: FastRequest) -> None:
        key = self._find_rate_key(request)
        if key is None:
            return
        count, second = self._address_counts.find(key), monotonic()
        if count.exceeds(second):
            raise self._build_rate_error(
                "Too many texts from your address. Try again later.", count.find_wait(second)
            )

    def _build_rate_error(self, detail: str, seconds: int) -> RateLimitedError:
        self.outcomes["limited"] += 1
        return RateLimitedError(detail, retry_after_seconds=max(1, seconds))


_bodies: Final = BodyDecoder(SentText)
