"""Visits one address of a crawl: fetches it, reads it, and hands it to the classifier."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Final, assert_never

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.pages.classify.queue import CRAWL_LENGTH_MAX, ClassifyQueue
from adloom.pages.classify.request import ClassifyRequest, make_request
from adloom.pages.crawl import store
from adloom.pages.crawl.fetch import (
    BusyServer,
    CrawlPace,
    FailedFetch,
    FetchedPage,
    FetchResult,
    MovedPage,
    NotAPage,
    NotModified,
    RedirectedPage,
    fetch_page,
)
from adloom.pages.crawl.frontier import FoundUrl, find_pages, read_address
from adloom.pages.crawl.model import CrawlPlan, UrlOutcome, UrlState, WaitingUrl, describe_canonical
from adloom.pages.crawl.robots import RobotsCache
from adloom.pages.model import PageSource, compute_expiry
from adloom.pages.text.extracted import ExtractedPage, UnreadablePage
from adloom.runtime.outbound.client import OutboundClient
from adloom.runtime.postgres import Pool
from adloom.runtime.process.tuning import freeze_new_objects

if TYPE_CHECKING:
    from adloom.pages.text.extract import TextExtractor

ATTEMPTS_MAX: Final = 3  # Of a server that says that it is busy.
FULL_QUEUE_SECONDS: Final = 0.1
AWAY_SECONDS: Final = 1.0
REDIRECTS_MAX: Final = 5
TOO_MANY_REDIRECTS: Final = f"It redirects more than {REDIRECTS_MAX} times."
WITHOUT_TEXT: Final = "It has no text without scripts."


class PageReader:
    """Extracts text in a thread of its own, one page at a time: the event loop goes on."""

    def __init__(self) -> None:
        self._extractor: TextExtractor | None = None
        self._thread = ThreadPoolExecutor(1, "extract")

    @property
    def is_loaded(self) -> bool:
        return self._extractor is not None

    async def read(self, page: FetchedPage) -> ExtractedPage | UnreadablePage:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._extract, page)

    def _extract(self, page: FetchedPage) -> ExtractedPage | UnreadablePage:
        if self._extractor is None:
            # With the first page: an installation without sites does without these libraries.
            from adloom.pages.text.extract import TextExtractor  # noqa: PLC0415

            self._extractor = TextExtractor()
            freeze_new_objects()
        return self._extractor.extract(page.body, address=page.address, charset=page.charset)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


class VisitParts(msgspec.Struct, frozen=True, kw_only=True):
    """What every crawl of a process uses."""

    pool: Pool
    client: OutboundClient
    queue: ClassifyQueue
    reader: PageReader
    clock: Clock
    robot: str
    fresh_hours: int
    delay_seconds: float


class Visitor:
    """Visits the addresses of one crawl."""

    def __init__(  # noqa: PLR0913 - what a crawl is made of
        self,
        plan: CrawlPlan,
        parts: VisitParts,
        robots: RobotsCache,
        pace: CrawlPace,
        *,
        started_at: datetime,
        prior: int | None,
        on_extended: Callable[[int], None],
        left: set[str],
    ) -> None:
        """Make a visitor; `left` are pages that failed, or were left for another: none is canonical for a second one."""
        self._plan = plan
        self._parts = parts
        self._robots = robots
        self._pace = pace
        self._started_at = started_at
        self._prior = prior
        self._on_extended = on_extended
        self._hosts = plan.hosts
        self.left = left
        # One page at a time asks whether the queue has room again.
        self._submitting = asyncio.Lock()

    async def visit(self, waiting: WaitingUrl, *, redirects: int = 0) -> UrlOutcome:  # noqa: PLR0911 - one for each result
        """Visit an address, and return what came of it; a redirect is a request like others, with its host's rules."""
        rules = await self._robots.read(waiting.address)
        if isinstance(rules, str):
            return _make_skipped(rules)
        if not rules.allows(waiting.address):
            return _make_skipped("robots.txt disallows it.")
        result = await self._fetch(waiting)
        match result:
            case FetchedPage():
                return await self._read(waiting, result)
            case NotModified(etag=etag, last_modified=last_modified):
                return await self._keep_unmodified(waiting, etag, last_modified)
            case RedirectedPage(target=target, reason=reason):
                return UrlOutcome(state=UrlState.SKIPPED, reason=reason, instead=target)
            case MovedPage(address=address):
                if redirects == REDIRECTS_MAX:
                    return UrlOutcome(state=UrlState.FAILED, reason=TOO_MANY_REDIRECTS)
                moved = msgspec.structs.replace(waiting, address=address)
                return await self.visit(moved, redirects=redirects + 1)
            case NotAPage(reason=reason):
                return _make_skipped(reason)
            case FailedFetch(reason=reason) | BusyServer(reason=reason):
                return UrlOutcome(state=UrlState.FAILED, reason=reason)
            case _:
                assert_never(result)

    async def _fetch(self, waiting: WaitingUrl) -> FetchResult:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            await self._pace.wait()
            result = await fetch_page(self._parts.client, waiting, self._hosts, robot=self._parts.robot)
            if not isinstance(result, BusyServer) or attempt == ATTEMPTS_MAX:
                return result
            self._pace.hold(result.seconds)
        raise AssertionError("the last attempt returns")

    async def _read(self, waiting: WaitingUrl, page: FetchedPage) -> UrlOutcome:
        extracted = await self._parts.reader.read(page)
        if isinstance(extracted, UnreadablePage):
            if extracted is UnreadablePage.EMPTY:
                return UrlOutcome(state=UrlState.SKIPPED, reason=WITHOUT_TEXT, has_text=False)
            return UrlOutcome(state=UrlState.FAILED, reason=f"It cannot be read: {extracted.value}.")
        links = self._choose_links(waiting, page, extracted)
        if page.is_noindex or extracted.is_noindex:
            return _make_skipped("It asks not to be indexed.", links, waiting.depth)
        canonical = read_address(extracted.canonical, self._hosts) if extracted.canonical else None
        if canonical is not None and canonical.url != waiting.url and canonical.url not in self.left:
            self.left.add(waiting.url)
            reason = describe_canonical(canonical.url)
            return msgspec.structs.replace(_make_skipped(reason, links, waiting.depth), instead=canonical)
        if not extracted.has_text:
            outcome = _make_skipped(WITHOUT_TEXT, links, waiting.depth)
            return msgspec.structs.replace(outcome, has_text=False)
        has_validator = page.etag is not None or page.last_modified is not None
        outcome = await self._hand_over(waiting, page, extracted)
        return msgspec.structs.replace(
            outcome, links=links, links_depth=waiting.depth + 1, are_links_kept=has_validator
        )

    def _choose_links(
        self, waiting: WaitingUrl, page: FetchedPage, extracted: ExtractedPage
    ) -> list[FoundUrl]:
        if waiting.depth >= self._plan.max_depth or page.is_nofollow or extracted.is_nofollow:
            return []
        return find_pages(extracted.links, self._hosts)

    async def _hand_over(
        self, waiting: WaitingUrl, page: FetchedPage, extracted: ExtractedPage
    ) -> UrlOutcome:
        """Send the text to the classifier, unless it is the text that was classified last."""
        now = self._parts.clock.now()
        request = make_request(
            site_id=self._plan.site_id,
            url=waiting.url,
            source=PageSource.CRAWL,
            now=now,
            title=extracted.title,
            description=extracted.description,
            text=extracted.text,
            language=extracted.language,
            etag=page.etag,
            last_modified=page.last_modified,
        )
        fetched = UrlOutcome(state=UrlState.FETCHED, content_hash=request.content_hash)
        if waiting.content_hash == request.content_hash and waiting.classified_at is not None:
            if waiting.classified_at >= self._started_at:
                return fetched  # Before this crawl was interrupted.
            if await self._extend(waiting.url, page.etag, page.last_modified, now=now):
                return UrlOutcome(state=UrlState.UNCHANGED)
        await self._submit(request)
        return fetched

    async def _keep_unmodified(
        self, waiting: WaitingUrl, etag: str | None, last_modified: str | None
    ) -> UrlOutcome:
        if not await self._extend(waiting.url, etag, last_modified, now=self._parts.clock.now()):
            fresh = msgspec.structs.replace(waiting, etag=None, last_modified=None, content_hash=None)
            return await self.visit(fresh)  # Its page was deleted meanwhile.
        links: list[FoundUrl] = []
        if waiting.depth < self._plan.max_depth:
            async with self._parts.pool.acquire() as connection:
                links = await store.read_prior_links(connection, self._prior, waiting.url)
        return UrlOutcome(
            state=UrlState.UNCHANGED, links=links, links_depth=waiting.depth + 1, are_links_kept=True
        )

    async def _extend(self, url: str, etag: str | None, last_modified: str | None, *, now: datetime) -> bool:
        async with self._parts.pool.acquire() as connection:
            version = await store.extend_page(
                connection,
                self._plan.site_key,
                url,
                expires_at=compute_expiry(now, fresh_hours=self._parts.fresh_hours),
                now=now,
                etag=etag,
                last_modified=last_modified,
            )
        if version is not None:
            self._on_extended(version)
        return version is not None

    async def _submit(self, request: ClassifyRequest) -> None:
        """Put the page on the classifier's queue; wait while that is full or away."""
        async with self._submitting:
            while True:
                try:
                    if await self._parts.queue.put(request, length_max=CRAWL_LENGTH_MAX):
                        return
                    await asyncio.sleep(FULL_QUEUE_SECONDS)
                except UnavailableError:
                    await asyncio.sleep(AWAY_SECONDS)


def _make_skipped(reason: str, links: list[FoundUrl] | None = None, depth: int = 0) -> UrlOutcome:
    return UrlOutcome(state=UrlState.SKIPPED, reason=reason, links=links or [], links_depth=depth + 1)
