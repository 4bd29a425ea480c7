"""Works off the queue of pages: classifies, writes the page, notifies processes that hold pages, removes the entry.

A worker that is killed leaves its entries in the queue. Restarted under the same name it takes them up at once,
else another worker claims them. An entry whose text was classified before the kill costs a look at its page.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

import asyncpg
import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.ids import IdSource, PageId
from adloom.pages.classify.protocol import Classifier, PageContent
from adloom.pages.classify.queue import CLAIM_SECONDS, ClassifyQueue, QueuedRequest
from adloom.pages.classify.request import ClassifyRequest
from adloom.pages.classify.store import find_classified, renew_classification, renew_given
from adloom.pages.model import FRESH_HOURS, PageSource, compute_expiry
from adloom.pages.notice import PageNotice, publish_page_notice
from adloom.pages.store import PageClassification, write_classification, write_failure
from adloom.runtime.loops import OUTAGE_SECONDS, RepeatedLine, pause
from adloom.runtime.postgres import Pool, is_reachable
from adloom.runtime.process.tuning import give_memory_back
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

# Few at once: what one worker has taken, no other can begin.
ENTRIES_AT_ONCE: Final = 4
WAIT_SECONDS: Final = 4.0  # A connection gives up after five.
CLAIM_EVERY_SECONDS: Final = 10.0
KEEP_EVERY_SECONDS: Final = CLAIM_SECONDS / 3
AWAY_SECONDS: Final = 1.0
# A text that ended so many classifiers is not tried again.
DELIVERIES_MAX: Final = 4
TEXT_START_CHARACTERS: Final = 2_000
IDLE_SECONDS_MAX: Final = 30.0  # Without a page for so long, the classifier is put out of memory.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class PageOutcome(StrEnum):
    """What came of an entry."""

    CLASSIFIED = "classified"
    RENEWED = "renewed"
    SKIPPED = "skipped"
    FAILED = "failed"


class ClassifyTally(msgspec.Struct):
    """Counts since the process started; `queue_length` is as of the last look."""

    outcomes: dict[str, int]
    milliseconds: float = 0.0
    away: int = 0
    queue_length: int = 0


class ClassifyWorker:
    """Classifies pages, a few at once; several workers share the queue."""

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        pool: Pool,
        valkey: Valkey,
        load: Callable[[], Awaitable[Classifier]],
        *,
        consumer: str,
        clock: Clock,
        ids: IdSource,
        fresh_hours: int = FRESH_HOURS,
        claim_seconds: float = CLAIM_SECONDS,
        idle_seconds_max: float = IDLE_SECONDS_MAX,
        away_seconds: float = AWAY_SECONDS,
    ) -> None:
        """Make a worker; `load` is called for the first page, and for the first after a while without any.

        Meanwhile a classifier takes no memory.
        """
        self._pool = pool
        self._valkey = valkey
        self._queue = ClassifyQueue(valkey)
        self._load = load
        self._classifier: Classifier | None = None
        self._loading = asyncio.Lock()
        self._consumer = consumer
        self._clock = clock
        self._ids = ids
        self._fresh_hours = fresh_hours
        self._claim_seconds = claim_seconds
        self._idle_seconds_max = idle_seconds_max
        self._away_seconds = away_seconds
        self._worked_at = 0.0
        self._log_waiting = RepeatedLine(log, "classifier_waits", seconds=OUTAGE_SECONDS)
        self.unloaded = asyncio.Event()  # Set while there is none any more.
        self.tally = ClassifyTally(dict.fromkeys(PageOutcome, 0))

    async def run(self, stop: asyncio.Event) -> None:
        """Work until stopped; while Valkey or PostgreSQL is away, entries wait in the queue."""
        is_resumed, claimed_at = False, -CLAIM_EVERY_SECONDS
        while not stop.is_set():
            try:
                if not is_resumed:
                    entries = await self._queue.resume(self._consumer, count_max=ENTRIES_AT_ONCE)
                    is_resumed = not entries
                elif time.monotonic() - claimed_at >= min(CLAIM_EVERY_SECONDS, self._claim_seconds):
                    entries = await self._queue.claim(
                        self._consumer, count_max=ENTRIES_AT_ONCE, idle_seconds=self._claim_seconds
                    )
                    claimed_at = claimed_at if entries else time.monotonic()
                else:
                    entries = await self._wait_for_entries(stop)
                self.tally.queue_length = await self._queue.count_waiting()
                await self._work_off(entries, stop)
                self._unload_if_idle(is_idle=not entries)
            except (UnavailableError, asyncpg.PostgresError, asyncpg.InterfaceError, *VALKEY_AWAY) as error:
                # What was taken and not acknowledged is taken up again.
                is_resumed = False
                self.tally.away += 1
                self._log_waiting(reason=type(error).__name__)
                await self._wait_for_database(stop)

    async def _wait_for_database(self, stop: asyncio.Event) -> None:
        """Wait a moment, and until PostgreSQL answers: each time that entries are taken up again counts as an end."""
        await pause(self._away_seconds, stop)
        while not stop.is_set() and not await is_reachable(self._pool):
            await pause(self._away_seconds, stop)

    def _unload_if_idle(self, *, is_idle: bool) -> None:
        now = time.monotonic()
        if not is_idle:
            self._worked_at = now
        elif self._classifier is not None and now - self._worked_at >= self._idle_seconds_max:
            self._classifier = None
            give_memory_back()
            self.unloaded.set()
            log.info("classifier_unloaded")

    async def _wait_for_entries(self, stop: asyncio.Event) -> Sequence[QueuedRequest]:
        """Take new entries; none after a while, or at a stop. What comes at that moment is taken up again later."""
        reading = asyncio.ensure_future(
            self._queue.read(
                self._consumer,
                count_max=ENTRIES_AT_ONCE,
                wait_seconds=min(WAIT_SECONDS, self._claim_seconds),
            )
        )
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([reading, stopping], return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else []
        finally:
            stopping.cancel()
            reading.cancel()
            await asyncio.wait([reading])
            if not reading.cancelled():
                reading.exception()  # Looked at: at a stop, an outage changes nothing.

    async def _work_off(self, entries: Sequence[QueuedRequest], stop: asyncio.Event) -> None:
        if not entries:
            return
        waiting = [entry.entry_id for entry in entries]
        keeping = asyncio.ensure_future(self._keep(waiting))
        # Beside each other: while one is read or written, another is classified. Entries of one page in their order.
        by_page: dict[tuple[UUID, str], list[QueuedRequest]] = {}
        for entry in entries:
            by_page.setdefault((entry.request.site_id, entry.request.url), []).append(entry)

        async def work_off_page(of_page: Sequence[QueuedRequest]) -> None:
            for entry in of_page:
                if stop.is_set():
                    return
                outcome = await self._handle(entry)
                await self._queue.acknowledge([entry.entry_id])
                waiting.remove(entry.entry_id)
                self.tally.outcomes[outcome] += 1

        try:
            async with asyncio.TaskGroup() as group:
                for of_page in by_page.values():
                    group.create_task(work_off_page(of_page))
        except ExceptionGroup as errors:
            # What is away is away for all: one reason is enough, and all that was not done is taken up again.
            raise errors.exceptions[0] from errors
        finally:
            keeping.cancel()

    async def _keep(self, entry_ids: list[str]) -> None:
        """Say from time to time that these are being worked on: a language model may take a minute."""
        while True:
            await asyncio.sleep(KEEP_EVERY_SECONDS)
            try:
                await self._queue.keep(self._consumer, entry_ids)
            except UnavailableError as error:
                self._log_waiting(reason=type(error).__name__)

    async def _handle(self, entry: QueuedRequest) -> PageOutcome:
        request = entry.request
        if entry.deliveries > DELIVERIES_MAX:
            return await self._fail(request, "The classifier ended several times while it read this page.")
        async with self._pool.acquire() as connection:
            known = await find_classified(connection, request.site_id, request.url)
        if known is not None and known.classified_at is not None:
            if known.classified_at >= request.requested_at:
                return PageOutcome.SKIPPED
            if known.is_given(self._clock.now()) and request.source is not PageSource.API:
                # A person's word counts more than ours; a crawl only says that the page is still there.
                return await self._renew_given(request)
        async with self._loading:
            if self._classifier is None:
                self._classifier = await self._load()
                self.unloaded.clear()
        classifier = self._classifier
        if known is not None and known.classified_at is not None:
            is_same = (known.classifier, known.classifier_version) == (classifier.name, classifier.version)
            if is_same and known.content_hash == request.content_hash:
                # A text that was only kept says nothing about how fresh its page is.
                return PageOutcome.SKIPPED if request.is_kept else await self._renew(request)
        return await self._classify(request, classifier)

    async def _classify(self, request: ClassifyRequest, classifier: Classifier) -> PageOutcome:
        page = msgspec.convert(request, PageContent, from_attributes=True)
        began = time.perf_counter()
        try:
            found = await classifier.classify(page)
        except Exception as error:
            # Of one page, never of the process; what the page says is not in the log.
            log.exception("page_not_classified", site=str(request.site_id), url=request.url)
            return await self._fail(request, f"The classifier failed: {type(error).__name__}.")
        self.tally.milliseconds += (time.perf_counter() - began) * 1000
        now = self._clock.now()
        name, version = found.by or (classifier.name, classifier.version)
        classification = PageClassification(
            title=request.title or None,
            language=request.language,
            categories=found.categories,
            evidence=found.evidence,
            source=request.source,
            classifier=name,
            classifier_version=version,
            content_hash=request.content_hash,
            text_start=_cut_start(request) or None,
            etag=request.etag,
            last_modified=request.last_modified,
            fetched_at=_find_fetched_at(request),
            classified_at=now,
            expires_at=compute_expiry(now, fresh_hours=self._fresh_hours),
        )
        async with self._pool.acquire() as connection:
            written = await write_classification(
                connection,
                request.site_id,
                request.url,
                classification,
                page_id=PageId(self._ids.make()),
            )
        await self._notify(request, written and written.version)
        return PageOutcome.CLASSIFIED if written else PageOutcome.SKIPPED

    async def _renew_given(self, request: ClassifyRequest) -> PageOutcome:
        if request.source is not PageSource.CRAWL or request.is_kept:
            return PageOutcome.SKIPPED
        now = self._clock.now()
        async with self._pool.acquire() as connection:
            version = await renew_given(
                connection, request, now=now, expires_at=compute_expiry(now, fresh_hours=self._fresh_hours)
            )
        await self._notify(request, version)
        return PageOutcome.RENEWED if version else PageOutcome.SKIPPED

    async def _renew(self, request: ClassifyRequest) -> PageOutcome:
        now = self._clock.now()
        async with self._pool.acquire() as connection:
            version = await renew_classification(
                connection,
                request,
                classified_at=now,
                expires_at=compute_expiry(now, fresh_hours=self._fresh_hours),
                fetched_at=_find_fetched_at(request),
            )
        await self._notify(request, version)
        return PageOutcome.RENEWED

    async def _fail(self, request: ClassifyRequest, reason: str) -> PageOutcome:
        async with self._pool.acquire() as connection:
            written = await write_failure(
                connection,
                request.site_id,
                request.url,
                reason=reason,
                source=request.source,
                page_id=PageId(self._ids.make()),
                now=self._clock.now(),
            )
        await self._notify(request, written and written.version)
        return PageOutcome.FAILED

    async def _notify(self, request: ClassifyRequest, version: int | None) -> None:
        if version is not None:
            await publish_page_notice(self._valkey, PageNotice(request.site_id, version))


def _cut_start(request: ClassifyRequest) -> str:
    """Keep what is needed to classify the page again: description and text, as a classifier would read them."""
    return " ".join(part for part in (request.description, request.text) if part)[:TEXT_START_CHARACTERS]


def _find_fetched_at(request: ClassifyRequest) -> datetime | None:
    is_fetched = request.source is PageSource.CRAWL and not request.is_kept
    return request.requested_at if is_fetched else None
