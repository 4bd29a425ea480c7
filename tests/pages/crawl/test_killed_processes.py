"""Crawler, classifier and worker as processes, killed together amid a crawl: all pages are known and sold, each once."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator

import pytest

from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from tests.support.control import Client, admin, control
from tests.support.forked import ForkedPopen
from tests.support.product import clean_environment
from tests.support.website import running_website

__all__ = ["admin", "control"]

PAGES = 16
KILLED_AT = 5  # Pages that are classified by then.
CONCURRENCY = 3
AT_ONCE = 4  # Pages that a classifier works on.
SECONDS_MAX = 90
TEXT = (
    "The champion won the tennis match in three sets after a long rally at the net, and served an ace in the tie-break. "
    * 3
)
SOLD = """
    SELECT count(*) FROM shortlists, jsonb_array_elements(slots) AS slot
     WHERE jsonb_array_length(slot -> 'candidates') = 1
"""


@contextlib.contextmanager
def running(module: str, variables: dict[str, str]) -> Generator[subprocess.Popen[bytes]]:
    process = ForkedPopen(
        [sys.executable, "-m", f"adloom.app.{module}"], env={**clean_environment(), **variables}
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)


@contextlib.contextmanager
def running_all(variables: dict[str, str]) -> Generator[None]:
    """Run all three until they are killed."""
    with running("crawler", variables), running("classifier", variables), running("worker", variables):
        yield


async def until(is_so: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(SECONDS_MAX):
            while not await is_so():  # noqa: ASYNC110 - other processes change it
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"not within {SECONDS_MAX} s: {what}")


async def make_market(admin: Client) -> str:
    """Make a site with a slot and a campaign that wants its pages, and return the site's id."""
    site = await admin.make_site(
        domain="a.test", cronSchedule=None, approvalMode="automatic", crawlConcurrency=CONCURRENCY
    )
    await admin.make_placement(
        slug="aside", siteId=site["id"], delivery="contextual", layoutType="sidebar_single"
    )
    banner = await admin.make_banner()
    campaign = await admin.make_campaign(bidAmount=5, categories=["483"])
    path = f"/admin/campaigns/{campaign['id']}"
    assert (await admin.post(f"{path}/creatives", json={"bannerId": banner["id"]})).status_code == 201
    assert (await admin.patch(f"{path}/activate")).status_code == 200
    return site["id"]


@pytest.mark.process
@pytest.mark.timeout(300)
async def test_whatever_is_killed_amid_a_crawl_every_page_is_classified_and_sold_once(
    admin: Client, pool: Pool, database_url: str, redis_url: str
) -> None:
    site_id = await make_market(admin)

    async def is_begun() -> bool:
        known = await pool.fetchval("SELECT count(*) FROM site_pages WHERE classified_at IS NOT NULL")
        return known >= KILLED_AT

    async def read_crawl() -> list[str | int]:
        (row,) = await pool.fetch(
            "SELECT state, pages_fetched, pages_classified, pages_failed FROM site_crawls"
        )
        return list(row)

    async def has_ended() -> bool:
        return (await read_crawl())[0] not in {"queued", "running"}

    async def is_sold() -> bool:
        return await pool.fetchval(SOLD) == PAGES + 1

    async with running_website() as website:
        paths = [f"/{number}" for number in range(PAGES)]
        website.article("/", "Front", TEXT, tuple(paths))
        for path in paths:
            website.article(path, f"Match {path}", f"Match {path}. {TEXT}")
        website.delay = 0.2
        variables = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "ADLOOM_CRAWLER_PORT": "0",
            "ADLOOM_CLASSIFIER_PORT": "0",
            "ADLOOM_PROCESS": "classifier-1",
            "WORKER_PORT": str(find_port()),
            "ADLOOM_CRAWL_RESOLVE": f"a.test=127.0.0.1:{website.port}",
        }
        assert (await admin.post(f"/admin/sites/{site_id}/crawl")).status_code == 202
        with running_all(variables):
            await until(is_begun, "some pages are classified")
        known = await pool.fetch("SELECT url, version FROM site_pages WHERE classified_at IS NOT NULL")
        versions = {row["url"]: row["version"] for row in known}
        with running_all(variables):
            await until(has_ended, "the crawl has ended")
            await until(is_sold, "all pages have a shortlist")

    assert await read_crawl() == ["finished", PAGES + 1, PAGES + 1, 0]
    rows = await pool.fetch("SELECT url, version, categories, classifier FROM site_pages")
    pages = {row["url"]: row for row in rows}
    assert set(pages) == {"a.test", *(f"a.test{path}" for path in paths)}
    assert {url: pages[url]["version"] for url in versions} == versions, (
        "what was written is not written again"
    )
    assert {(row["categories"][0]["id"], row["classifier"]) for row in rows} == {("539", "embedded")}
    fetched = [path for path in website.paths if path not in {"/robots.txt", "/sitemap.xml"}]
    assert len(fetched) <= PAGES + 1 + CONCURRENCY + AT_ONCE, "what was on its way, and no more"
    assert await pool.fetchval("SELECT count(*) FROM site_approvals") == 1
