"""Pages in the database: what a classifier writes, what fails, and what is removed."""

from datetime import datetime, timedelta

from adloom.core.clock import ManualClock
from adloom.core.ids import PageId, SiteId, SystemIds
from adloom.pages.cleaning import KEPT_AFTER_EXPIRY, PageCleaning
from adloom.pages.follow.store import read_versions
from adloom.pages.model import Evidence, PageCategory, PageSource, compute_expiry
from adloom.pages.store import (
    PageClassification,
    WrittenPage,
    find_page_by_url,
    write_classification,
    write_failure,
    write_waiting,
)
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.builders import NOON
from tests.support.pages import insert_site, write_page


def new_id() -> PageId:
    return PageId(SystemIds().make())


def found(at: datetime = NOON, **changes: object) -> PageClassification:
    fields: dict[str, object] = {
        "title": "Bread",
        "language": "en",
        "categories": (PageCategory("210", 0.9),),
        "evidence": (Evidence("210", "baking bread", "Flour and water.", 0.8),),
        "source": PageSource.CRAWL,
        "classifier": "embedded",
        "classifier_version": "1",
        "content_hash": b"0123456789abcdef",
        "text_start": "Flour and water.",
        "etag": '"1"',
        "classified_at": at,
        "expires_at": compute_expiry(at),
        **changes,
    }
    return PageClassification(**fields)  # pyright: ignore[reportArgumentType] - as above


async def write(pool: Pool, site_id: SiteId, page: PageClassification) -> WrittenPage:
    async with pool.acquire() as connection, connection.transaction():
        written = await write_classification(connection, site_id, "a.test/bread", page, page_id=new_id())
    assert written is not None
    return written


async def test_a_page_keeps_its_id_and_gets_another_version(pool: Pool) -> None:
    site_id = await insert_site(pool, "a.test")

    first = await write(pool, site_id, found())
    second = await write(pool, site_id, found(NOON + timedelta(hours=1), title=None))

    assert second.id == first.id
    assert second.version > first.version
    page = await find_page_by_url(await pool.acquire(), site_id, "a.test/bread")
    assert (page.title, page.version, page.created_at) == ("Bread", second.version, NOON)
    assert page.evidence == found().evidence
    assert page.categories == (PageCategory("210", 0.9),)


async def test_a_failure_leaves_what_is_known_and_ends_with_the_next_success(pool: Pool) -> None:
    site_id = await insert_site(pool, "a.test")
    await write(pool, site_id, found())
    async with pool.acquire() as connection:
        await write_failure(
            connection,
            site_id,
            "a.test/bread",
            reason="The server answered 500. " + "x" * 600,
            source=PageSource.CRAWL,
            page_id=new_id(),
            now=NOON + timedelta(hours=1),
        )
        failed = await find_page_by_url(connection, site_id, "a.test/bread")

    await write(pool, site_id, found())

    assert failed.failure is not None
    assert failed.failure.startswith("The server answered 500.")
    assert (failed.categories, failed.classified_at) == (found().categories, NOON)
    async with pool.acquire() as connection:
        assert (await find_page_by_url(connection, site_id, "a.test/bread")).failure is None


async def test_a_page_of_a_site_that_is_gone_is_not_written(pool: Pool) -> None:
    nowhere = SiteId(SystemIds().make())
    async with pool.acquire() as connection:
        assert await write_classification(connection, nowhere, "a.test", found(), page_id=new_id()) is None
        waiting = await write_waiting(
            connection, nowhere, "a.test", title=None, source=PageSource.API, page_id=new_id(), now=NOON
        )
        assert waiting is None


async def test_the_oldest_pages_beyond_the_most_are_removed(pool: Pool, valkey: Valkey) -> None:
    full, other = await insert_site(pool, "a.test"), await insert_site(pool, "b.test")
    for number in range(7):
        await write_page(pool, full, f"a.test/{number}", at=NOON - timedelta(minutes=number))
    await write_page(pool, full, "a.test/waiting", at=None)
    await write_page(pool, other, "b.test", at=NOON)
    before = await read_versions(pool)

    await PageCleaning(pool, valkey, ManualClock(NOON), pages_max=5, rows_max=2).run()

    left = [row[0] for row in await pool.fetch("SELECT url FROM site_pages ORDER BY url")]
    assert left == ["a.test/0", "a.test/1", "a.test/2", "a.test/3", "a.test/4", "b.test"]
    after = await read_versions(pool)
    assert after[full].removed > before[full].newest
    assert after[other] == before[other]


async def test_pages_that_browsers_sent_are_removed_first(pool: Pool, valkey: Valkey) -> None:
    site_id = await insert_site(pool, "a.test")
    for number in range(3):
        await write_page(pool, site_id, f"a.test/{number}", at=NOON - timedelta(hours=1 + number))
    for number in range(6):
        await write_page(pool, site_id, f"a.test/forged-{number}", at=NOON - timedelta(minutes=number))
    await pool.execute("UPDATE site_pages SET source = 'tag' WHERE url LIKE '%forged%'")

    await PageCleaning(pool, valkey, ManualClock(NOON), pages_max=4).run()

    left = [row[0] for row in await pool.fetch("SELECT url FROM site_pages ORDER BY url")]
    assert left == ["a.test/0", "a.test/1", "a.test/2", "a.test/forged-0"]


async def test_pages_of_the_domain_that_a_site_had_before_are_removed(pool: Pool, valkey: Valkey) -> None:
    site_id, other = await insert_site(pool, "a.test"), await insert_site(pool, "c.test")
    gone = ("a.test", "a.test/old", "a.test?of=b.test/", "evilb.test")
    kept = ("b.test/new", "b.test:8080/x", "b.test?p=12", "blog.b.test/x", "blog.b.test?at=12:30/x")
    for url in (*gone, *kept):
        await write_page(pool, site_id, url, at=NOON)
    await write_page(pool, other, "elsewhere.test", at=NOON)
    await pool.execute(
        "UPDATE sites SET domain = 'www.b.test', updated_at = $1 WHERE domain = 'a.test'", NOON
    )
    await pool.execute("UPDATE sites SET updated_at = $1 WHERE domain = 'c.test'", NOON - timedelta(days=2))

    await PageCleaning(pool, valkey, ManualClock(NOON)).run()

    left = [row[0] for row in await pool.fetch("SELECT url FROM site_pages ORDER BY url")]
    assert left == [*kept, "elsewhere.test"]


async def test_what_is_long_expired_is_removed(pool: Pool, valkey: Valkey) -> None:
    site_id = await insert_site(pool, "a.test")
    kept = NOON - KEPT_AFTER_EXPIRY
    await write_page(pool, site_id, "a.test/new", at=NOON)
    await write_page(pool, site_id, "a.test/stale", at=kept)
    await write_page(pool, site_id, "a.test/old", at=kept - timedelta(hours=49))
    await write_page(pool, site_id, "a.test/waiting", at=None)
    await write_page(pool, site_id, "a.test/forgotten", at=None)
    await pool.execute("UPDATE site_pages SET updated_at = $1 WHERE url LIKE '%waiting'", NOON)
    await pool.execute(
        "UPDATE site_pages SET updated_at = $1 WHERE url LIKE '%forgotten'", kept - timedelta(hours=1)
    )

    await PageCleaning(pool, valkey, ManualClock(NOON), rows_max=1).run()

    left = [row[0] for row in await pool.fetch("SELECT url FROM site_pages ORDER BY url")]
    assert left == ["a.test/new", "a.test/stale", "a.test/waiting"]
