"""Pages of a site are classified again."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from adloom.core.caller import Role
from adloom.core.clock import ManualClock
from adloom.core.ids import SiteId, SystemIds
from adloom.pages.classify.protocol import Classification, Classifier, PageContent
from adloom.pages.classify.queue import LENGTH_MAX, ClassifyQueue
from adloom.pages.classify.request import ClassifyRequest
from adloom.pages.classify.worker import ClassifyWorker, PageOutcome
from adloom.pages.model import PageSource
from adloom.pages.reclassify.job import Reclassification, request_reclassification
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.builders import NOON
from tests.support.control import ControlPlane, admin, control
from tests.support.eventually import eventually
from tests.support.pages import insert_site, write_page

__all__ = ["admin", "control"]

KEEP_TEXT = """
    UPDATE site_pages SET source = 'crawl', title = 'Bread', language = 'en', text_start = 'Flour.',
           content_hash = '\\x01', etag = '"1"', classified_at = $1
"""


async def write_texts(pool: Pool, site_id: SiteId, count: int) -> None:
    for number in range(count):
        await write_page(pool, site_id, f"a.test/{number}", at=NOON)
    await pool.execute(KEEP_TEXT, NOON - timedelta(hours=1))


async def ask(pool: Pool, site_id: SiteId) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await request_reclassification(connection, site_id, now=NOON)


async def drain(valkey: Valkey) -> list[ClassifyRequest]:
    queue = ClassifyQueue(valkey)
    taken = await queue.read("test", count_max=1_000, wait_seconds=0.01)
    await queue.acknowledge(one.entry_id for one in taken)
    return [one.request for one in taken]


async def test_kept_texts_are_asked_for_as_they_were(pool: Pool, valkey: Valkey) -> None:
    site_id = await insert_site(pool, "a.test")
    await write_texts(pool, site_id, 1)
    await ask(pool, site_id)

    assert await Reclassification(pool, ClassifyQueue(valkey), ManualClock(NOON)).run() == 1

    (request,) = await drain(valkey)
    assert (request.site_id, request.url, request.title, request.text) == (
        site_id,
        "a.test/0",
        "Bread",
        "Flour.",
    )
    assert (request.content_hash, request.etag, request.source) == (b"\x01", '"1"', PageSource.CRAWL)
    assert (request.requested_at, request.is_kept) == (NOON, True)


@pytest.mark.parametrize("texts_max", [2, 3, 5, 100])
async def test_a_full_queue_is_filled_again_later_and_no_page_is_left_out(
    texts_max: int, pool: Pool, valkey: Valkey
) -> None:
    first, second = await insert_site(pool, "a.test"), await insert_site(pool, "b.test")
    await write_texts(pool, first, 10)
    await write_page(pool, second, "b.test", at=NOON)
    await pool.execute(KEEP_TEXT, NOON - timedelta(hours=1))
    await ask(pool, first)
    await ask(pool, second)
    job = Reclassification(pool, ClassifyQueue(valkey), ManualClock(NOON), length_max=4, texts_max=texts_max)

    counts: list[int] = []
    urls: list[str] = []
    for _ in range(4):
        counts.append(await job.run())
        urls += [request.url for request in await drain(valkey)]

    assert counts == [4, 4, 3, 0]
    assert sorted(urls) == sorted([*(f"a.test/{number}" for number in range(10)), "b.test"])
    assert await pool.fetchval("SELECT count(*) FROM classify_again") == 0


class DyingQueue(ClassifyQueue):
    """Takes three requests; then the process is gone, before it could commit how far it is."""

    puts = 0

    async def put(self, request: ClassifyRequest, *, length_max: int = LENGTH_MAX) -> bool:
        if self.puts == 3:
            raise asyncio.CancelledError
        self.puts += 1
        return await super().put(request, length_max=length_max)


class CountingClassifier:
    """Says nothing of any page, and counts them."""

    name, version = "counting", "1"

    def __init__(self) -> None:
        self.asked = 0

    async def classify(self, page: PageContent, *, ids_max: int = 3) -> Classification:
        assert page.text
        assert ids_max
        self.asked += 1
        return Classification()


async def test_a_worker_that_is_killed_on_the_way_loses_no_page_and_has_none_classified_twice(
    pool: Pool, valkey: Valkey
) -> None:
    site_id = await insert_site(pool, "a.test")
    await write_texts(pool, site_id, 6)
    await ask(pool, site_id)
    with pytest.raises(asyncio.CancelledError):
        await Reclassification(pool, DyingQueue(valkey), ManualClock(NOON)).run()
    queue, classifier, stop = ClassifyQueue(valkey), CountingClassifier(), asyncio.Event()

    assert await Reclassification(pool, queue, ManualClock(NOON)).run() == 6

    async def load() -> Classifier:
        return classifier

    worker = ClassifyWorker(pool, valkey, load, consumer="one", clock=ManualClock(NOON), ids=SystemIds())
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        await eventually(lambda: sum(worker.tally.outcomes.values()) == 9, seconds=30)
        stop.set()
    assert (classifier.asked, worker.tally.outcomes[PageOutcome.SKIPPED]) == (6, 3)
    assert await queue.count_waiting() == 0
    assert await pool.fetchval("SELECT count(*) FROM site_pages WHERE classifier = 'counting'") == 6


async def test_what_was_classified_since_is_not_asked_for(pool: Pool, valkey: Valkey) -> None:
    site_id = await insert_site(pool, "a.test")
    await write_texts(pool, site_id, 2)
    await ask(pool, site_id)
    await pool.execute("UPDATE site_pages SET classified_at = $1 WHERE url = 'a.test/0'", NOON)

    await Reclassification(pool, ClassifyQueue(valkey), ManualClock(NOON)).run()

    assert [request.url for request in await drain(valkey)] == ["a.test/1"]


async def test_a_site_that_is_gone_is_not_asked_for(pool: Pool, valkey: Valkey) -> None:
    site_id = await insert_site(pool, "a.test")
    await write_texts(pool, site_id, 2)
    await ask(pool, site_id)
    await pool.execute("DELETE FROM sites")

    assert await Reclassification(pool, ClassifyQueue(valkey), ManualClock(NOON)).run() == 0


async def test_a_publisher_asks_for_its_site(control: ControlPlane, pool: Pool, valkey: Valkey) -> None:
    async with control.acting_as(Role.PUBLISHER) as publisher:
        site = await publisher.make_site(domain="a.test")
        site_id = SiteId(UUID(site["id"]))
        await write_texts(pool, site_id, 3)
        await pool.execute("UPDATE site_pages SET text_start = NULL WHERE url = 'a.test/1'")
        await write_page(pool, site_id, "a.test/given", at=NOON)

        answer = await publisher.post(f"/admin/sites/{site['id']}/classify-again")

    assert answer.status_code == 202
    assert answer.json() == {"fromText": 2, "atNextCrawl": 1}
    assert [request.url for request in await drain(valkey)] == ["a.test/0", "a.test/2"]
    row = await pool.fetchrow("SELECT content_hash, etag FROM site_pages WHERE url = 'a.test/1'")
    assert row is not None
    assert tuple(row) == (None, None), "the next crawl does not take it for unchanged"
