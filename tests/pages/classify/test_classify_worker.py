"""The worker of the queue: every page is classified once, whatever dies meanwhile."""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID

import asyncpg
import pytest
from msgspec.structs import replace

from adloom.core.clock import SystemClock
from adloom.core.ids import PageId, SiteId, SystemIds
from adloom.pages.classify.protocol import Classification, Classifier, PageContent
from adloom.pages.classify.queue import ClassifyQueue
from adloom.pages.classify.request import ClassifyRequest, make_request
from adloom.pages.classify.worker import DELIVERIES_MAX, ClassifyWorker, PageOutcome
from adloom.pages.model import Evidence, PageCategory, PageSource, compute_expiry
from adloom.pages.notice import PAGE_NOTICES, PageNotice, read_page_notice
from adloom.pages.store import PageClassification, write_classification
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Subscription, Valkey
from tests.support.eventually import eventually

SITE = SiteId(UUID(int=0x0190_0000_0000_7000_8000_0000_0000_0001))
NEW_SITE = "INSERT INTO sites (public_id, domain, name, created_at, updated_at) VALUES ($1, 'a.test', 'A', now(), now())"


class FakeClassifier:
    """Says «tennis» of every page, and remembers what it was asked."""

    name = "fake"

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.asked: list[PageContent] = []
        self.hold: asyncio.Event | None = None

    async def classify(self, page: PageContent, *, ids_max: int = 3) -> Classification:
        self.asked.append(page)
        if self.hold is not None:
            await self.hold.wait()
        if "bomb" in page.text:
            raise ValueError("boom")
        tennis = PageCategory("539", 0.8)
        return Classification((tennis,)[:ids_max], (Evidence("539", "tennis", page.text[:20], 0.7),))


@pytest.fixture
async def site(pool: Pool) -> SiteId:
    await pool.execute(NEW_SITE, SITE)
    return SITE


def a_request(path: str = "x", *, text: str = "A text.", at: datetime | None = None) -> ClassifyRequest:
    return make_request(
        site_id=SITE,
        url=f"a.test/{path}",
        source=PageSource.CRAWL,
        now=at or datetime.now(UTC),
        title="A title",
        text=text,
        etag='"1"',
    )


def a_worker(
    pool: Pool, valkey: Valkey, classifier: Classifier, *, consumer: str = "one", claim_seconds: float = 30
) -> ClassifyWorker:
    async def load() -> Classifier:
        return classifier

    return ClassifyWorker(
        pool,
        valkey,
        load,
        consumer=consumer,
        clock=SystemClock(),
        ids=SystemIds(),
        claim_seconds=claim_seconds,
    )


@asynccontextmanager
async def running(worker: ClassifyWorker) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        try:
            yield
        finally:
            stop.set()


def count_of(worker: ClassifyWorker) -> Callable[[], int]:
    return lambda: sum(worker.tally.outcomes.values())


async def test_a_page_is_classified_written_and_told(pool: Pool, valkey: Valkey, site: SiteId) -> None:
    worker = a_worker(pool, valkey, FakeClassifier())
    heard: list[bytes] = []
    began, stop = asyncio.Event(), asyncio.Event()
    listening = Subscription(valkey, PAGE_NOTICES, on_message=heard.append, on_start=began.set)
    async with asyncio.TaskGroup() as group:
        group.create_task(listening.run(stop))
        await began.wait()
        async with running(worker):
            await ClassifyQueue(valkey).put(a_request())
            await eventually(lambda: bool(heard), seconds=30)
        stop.set()

    row = await pool.fetchrow("SELECT * FROM site_pages")
    assert row is not None
    assert (row["url"], row["title"], row["classifier"]) == ("a.test/x", "A title", "fake")
    assert row["categories"] == [{"id": "539", "confidence": 0.8}]
    assert (row["text_start"], row["etag"]) == ("A text.", '"1"')
    assert row["expires_at"] - row["classified_at"] == timedelta(hours=48)
    assert read_page_notice(heard[0]) == PageNotice(site, row["version"])
    assert await ClassifyQueue(valkey).count_waiting() == 0


@pytest.mark.usefixtures("site")
async def test_the_same_text_is_renewed_without_work_and_a_new_version_classifies_it(
    pool: Pool, valkey: Valkey
) -> None:
    queue = ClassifyQueue(valkey)
    first, second = FakeClassifier(), FakeClassifier("2")
    early = datetime.now(UTC) - timedelta(days=3)
    for classifier, outcome in (
        (first, PageOutcome.CLASSIFIED),
        (first, PageOutcome.RENEWED),
        (second, PageOutcome.CLASSIFIED),
    ):
        worker = a_worker(pool, valkey, classifier)
        await pool.execute("UPDATE site_pages SET classified_at = $1, expires_at = $1", early)
        async with running(worker):
            await queue.put(a_request())
            await eventually(lambda: count_of(worker)() == 1, seconds=30)  # noqa: B023 - waited for in this turn
        assert worker.tally.outcomes[outcome] == 1
        assert await pool.fetchval("SELECT expires_at > now() FROM site_pages")

    assert (len(first.asked), len(second.asked)) == (1, 1)


@pytest.mark.usefixtures("site")
async def test_a_kept_text_is_classified_by_a_new_version_only_and_renews_nothing(
    pool: Pool, valkey: Valkey
) -> None:
    queue = ClassifyQueue(valkey)
    first, second = FakeClassifier(), FakeClassifier("2")
    early = datetime.now(UTC) - timedelta(days=3)
    for classifier, request, outcome in (
        (first, a_request(), PageOutcome.CLASSIFIED),
        (first, replace(a_request(), is_kept=True), PageOutcome.SKIPPED),
        (second, replace(a_request(), is_kept=True), PageOutcome.CLASSIFIED),
    ):
        worker = a_worker(pool, valkey, classifier)
        await pool.execute("UPDATE site_pages SET classified_at = $1, expires_at = $1", early)
        async with running(worker):
            await queue.put(request)
            await eventually(lambda: count_of(worker)() == 1, seconds=30)  # noqa: B023 - waited for in this turn
        assert worker.tally.outcomes[outcome] == 1
        is_fresh = await pool.fetchval("SELECT expires_at > now() FROM site_pages")
        assert is_fresh == (outcome is PageOutcome.CLASSIFIED)

    assert (len(first.asked), len(second.asked)) == (1, 1)


async def test_a_crawl_does_not_replace_categories_that_were_given_and_keeps_them_fresh(
    pool: Pool, valkey: Valkey, site: SiteId
) -> None:
    given_at = datetime.now(UTC) - timedelta(hours=40)
    given = PageClassification(
        categories=(PageCategory("424", 0.9),),
        source=PageSource.GIVEN,
        classified_at=given_at,
        expires_at=compute_expiry(given_at),
    )
    async with pool.acquire() as connection:
        await write_classification(connection, site, "a.test/x", given, page_id=PageId(SystemIds().make()))
    worker = a_worker(pool, valkey, FakeClassifier())

    async with running(worker):
        await ClassifyQueue(valkey).put(a_request())
        await eventually(lambda: count_of(worker)() == 1, seconds=30)

    row = await pool.fetchrow("SELECT source, categories::text, expires_at FROM site_pages")
    assert row is not None
    assert (row["source"], "424" in row["categories"]) == ("given", True)
    assert row["expires_at"] > compute_expiry(given_at)


@pytest.mark.usefixtures("site")
async def test_without_pages_the_classifier_is_put_out_of_memory_and_loaded_again_for_the_next(
    pool: Pool, valkey: Valkey
) -> None:
    loaded: list[FakeClassifier] = []

    async def load() -> Classifier:
        loaded.append(FakeClassifier())
        return loaded[-1]

    worker = ClassifyWorker(
        pool,
        valkey,
        load,
        consumer="one",
        clock=SystemClock(),
        ids=SystemIds(),
        claim_seconds=0.05,
        idle_seconds_max=0,
    )
    async with running(worker):
        assert loaded == []
        for number in range(2):
            kept = weakref.ref(await classify_one(worker, valkey, loaded, f"page-{number}"))
            await eventually(lambda kept=kept: kept() is None, seconds=30)

    assert worker.tally.outcomes["classified"] == 2


async def classify_one(
    worker: ClassifyWorker, valkey: Valkey, loaded: list[FakeClassifier], path: str
) -> FakeClassifier:
    """Have a page classified; return the classifier that was loaded for it."""
    before = count_of(worker)()
    await ClassifyQueue(valkey).put(a_request(path))
    await eventually(lambda: count_of(worker)() > before, seconds=30)
    return loaded.pop()


@pytest.mark.usefixtures("site")
async def test_a_request_that_is_older_than_the_page_is_not_worked_on(pool: Pool, valkey: Valkey) -> None:
    classifier = FakeClassifier()
    worker = a_worker(pool, valkey, classifier)
    queue = ClassifyQueue(valkey)
    async with running(worker):
        await queue.put(a_request())
        await eventually(lambda: count_of(worker)() == 1, seconds=30)
        await queue.put(a_request(text="An older text.", at=datetime.now(UTC) - timedelta(hours=1)))
        await eventually(lambda: count_of(worker)() == 2, seconds=30)

    assert len(classifier.asked) == 1
    assert worker.tally.outcomes[PageOutcome.SKIPPED] == 1


async def test_a_text_that_fails_is_noted_and_the_next_is_classified(
    pool: Pool, valkey: Valkey, site: SiteId
) -> None:
    worker = a_worker(pool, valkey, FakeClassifier())
    queue = ClassifyQueue(valkey)
    async with running(worker):
        await queue.put(a_request("bad", text="A bomb."))
        await queue.put(a_request("good"))
        await eventually(lambda: count_of(worker)() == 2, seconds=30)

    rows = await pool.fetch("SELECT url, failure FROM site_pages ORDER BY url")
    assert [tuple(row) for row in rows] == [
        ("a.test/bad", "The classifier failed: ValueError."),
        ("a.test/good", None),
    ]
    assert site


@pytest.mark.usefixtures("site")
async def test_a_text_that_ends_classifiers_is_given_up(pool: Pool, valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)
    await queue.put(a_request())
    await queue.read("one", count_max=1, wait_seconds=0.1)
    for _ in range(DELIVERIES_MAX - 1):
        await queue.resume("one", count_max=1)
    worker = a_worker(pool, valkey, classifier := FakeClassifier())

    async with running(worker):
        await eventually(lambda: count_of(worker)() == 1, seconds=30)

    assert classifier.asked == []
    assert "ended several times" in await pool.fetchval("SELECT failure FROM site_pages")


class AwayPool:
    """A pool whose database is away the first times."""

    def __init__(self, pool: Pool, times: int) -> None:
        self._pool = pool
        self.times = times

    def acquire(self) -> object:
        self._ask()
        return self._pool.acquire()

    async def fetchval(self, query: str) -> object:
        self._ask()
        return await self._pool.fetchval(query)

    def _ask(self) -> None:
        self.times -= 1
        if self.times >= 0:
            raise asyncpg.CannotConnectNowError("the database system is starting up")


@pytest.mark.usefixtures("site")
async def test_a_text_that_waits_for_the_database_is_not_given_up(pool: Pool, valkey: Valkey) -> None:
    async def load() -> Classifier:
        return FakeClassifier()

    away = AwayPool(pool, 3 * DELIVERIES_MAX)
    worker = ClassifyWorker(
        cast("Pool", away),
        valkey,
        load,
        consumer="one",
        clock=SystemClock(),
        ids=SystemIds(),
        away_seconds=0.01,
    )
    async with running(worker):
        await ClassifyQueue(valkey).put(a_request())
        await eventually(lambda: count_of(worker)() == 1, seconds=30)

    assert away.times < 0
    assert worker.tally.outcomes[PageOutcome.CLASSIFIED] == 1


async def test_a_page_of_a_site_that_is_gone_is_forgotten(pool: Pool, valkey: Valkey) -> None:
    worker = a_worker(pool, valkey, FakeClassifier())
    async with running(worker):
        await ClassifyQueue(valkey).put(a_request())
        await eventually(lambda: count_of(worker)() == 1, seconds=30)

    assert worker.tally.outcomes[PageOutcome.SKIPPED] == 1
    assert await ClassifyQueue(valkey).count_waiting() == 0


@pytest.mark.usefixtures("site")
async def test_what_another_worker_left_is_claimed(pool: Pool, valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)
    await queue.put(a_request())
    await queue.read("dead", count_max=1, wait_seconds=0.1)
    worker = a_worker(pool, valkey, FakeClassifier(), consumer="living", claim_seconds=0.1)

    async with running(worker):
        await eventually(lambda: count_of(worker)() == 1, seconds=30)

    assert worker.tally.outcomes[PageOutcome.CLASSIFIED] == 1
