"""Crawls over HTTP."""

from datetime import timedelta

import pytest

from adloom.core.clock import ManualClock
from adloom.core.ids import SystemIds
from adloom.pages.crawl.schedule import CrawlSchedule, open_crawl_queue
from adloom.runtime.jobs.queue import JobState
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON, UNKNOWN_ID, Json
from tests.support.control import Client, admin, control, problem

__all__ = ["admin", "control"]


@pytest.fixture
async def site(admin: Client) -> Json:
    return await admin.make_site(domain="magazine.test")


async def test_a_crawl_is_queued_once_at_a_time(admin: Client, site: Json, redis_url: str) -> None:
    path = f"/admin/sites/{site['id']}"

    started = await admin.post(f"{path}/crawl")

    assert started.status_code == 202
    crawl_id = started.json()["crawlId"]
    problem(await admin.post(f"{path}/crawl"), 409, "CRAWL_RUNNING")
    [listed] = (await admin.get(f"{path}/crawls")).json()["items"]
    assert listed == (await admin.get(f"{path}/crawls/{crawl_id}")).json()
    wanted = {"id": crawl_id, "state": "queued", "startedAt": None, "finishedAt": None, "reason": None}
    counts = dict.fromkeys(
        ("pagesFetched", "pagesClassified", "pagesUnchanged", "pagesFailed", "pagesWithoutText"), 0
    )
    assert listed.items() >= (wanted | counts).items()
    async with open_crawl_queue(redis_url) as queue:
        jobs = await queue.list_jobs(JobState.WAITING, first=0, count_max=10)
        assert [job.data for job in jobs.items] == [{"crawlId": crawl_id}]


async def test_a_crawl_is_cancelled_by_hand(admin: Client, site: Json) -> None:
    path = f"/admin/sites/{site['id']}"
    crawl_id = (await admin.post(f"{path}/crawl")).json()["crawlId"]

    cancelled = await admin.post(f"{path}/crawls/{crawl_id}/cancel")

    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "failed")
    assert cancelled.json()["reason"] == "It was cancelled."
    problem(await admin.post(f"{path}/crawls/{crawl_id}/cancel"), 409, "CRAWL_ENDED")
    assert (await admin.post(f"{path}/crawl")).status_code == 202


async def test_the_addresses_of_a_crawl_are_listed(admin: Client, site: Json, pool: Pool) -> None:
    path = f"/admin/sites/{site['id']}"
    crawl_id = (await admin.post(f"{path}/crawl")).json()["crawlId"]
    await pool.execute(
        "INSERT INTO crawl_urls (crawl_id, position, url, address, depth, state, reason) SELECT id, number,"
        " 'magazine.test/' || number, 'x', 1, CASE number WHEN 1 THEN 'failed' ELSE 'fetched' END, 'why'"
        " FROM site_crawls, generate_series(0, 2) AS number"
    )

    every = (await admin.get(f"{path}/crawls/{crawl_id}/urls")).json()
    failed = (await admin.get(f"{path}/crawls/{crawl_id}/urls", params={"state": "failed"})).json()

    assert [one["url"] for one in every["items"]] == [f"magazine.test/{number}" for number in range(3)]
    assert failed["items"] == [{"url": "magazine.test/1", "depth": 1, "state": "failed", "reason": "why"}]
    problem(
        await admin.get(f"{path}/crawls/{crawl_id}/urls", params={"state": "lost"}), 400, "VALIDATION_FAILED"
    )


async def test_crawls_are_of_their_own_site(admin: Client, site: Json) -> None:
    path = f"/admin/sites/{site['id']}"
    crawl_id = (await admin.post(f"{path}/crawl")).json()["crawlId"]
    other = await admin.make_site(domain="other.test")

    problem(await admin.get(f"/admin/sites/{other['id']}/crawls/{crawl_id}"), 404, "CRAWL_NOT_FOUND")
    problem(await admin.post(f"/admin/sites/{other['id']}/crawls/{crawl_id}/cancel"), 404, "CRAWL_NOT_FOUND")
    problem(await admin.post(f"/admin/sites/{UNKNOWN_ID}/crawl"), 404, "SITE_NOT_FOUND")


async def test_a_site_of_a_deleted_publisher_is_not_crawled_by_the_clock(
    admin: Client, pool: Pool, redis_url: str
) -> None:
    publisher = await admin.make_publisher()
    closed, open_site = await admin.make_site(publisherId=publisher["id"]), await admin.make_site()
    assert (await admin.delete(f"/admin/publishers/{publisher['id']}")).status_code == 204

    async with open_crawl_queue(redis_url) as queue:
        await CrawlSchedule(pool, queue, ManualClock(NOON + timedelta(days=2)), SystemIds()).start_due()

    started = {
        one["id"]: (await admin.get(f"/admin/sites/{one['id']}/crawls")).json()["totalCount"]
        for one in (closed, open_site)
    }
    assert started == {closed["id"]: 0, open_site["id"]: 1}
