"""A crawl of a real website: what it fetches, what it leaves, and what it says at its end."""

import asyncio
import time
from datetime import timedelta

import pytest

from adloom.pages.crawl.model import (
    CrawlInterruptedError,
    CrawlRunningError,
    CrawlState,
    Progress,
    UrlState,
    describe_end,
)
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.crawls import CrawlWorld, open_world
from tests.support.eventually import eventually
from tests.support.website import Website, gzipped, running_website

TEXT = (
    "The defending champion beat a young qualifier in five sets on the centre court. He served eighteen aces, but his "
    "backhand let him down in the second set, and the tie-break went to his opponent. After the rain they came back."
)


def article(website: Website, path: str, *links: str, in_head: str = "") -> None:
    website.article(path, f"About {path}", f"{TEXT} That was {path}.", links, in_head=in_head)


async def test_a_crawl_finds_what_is_linked_as_deep_as_it_is_told(
    world: CrawlWorld, website: Website
) -> None:
    article(website, "/", "/cars", "/tennis#top", "https://elsewhere.test/", "/photo.jpg", "mailto:a@b.c")
    article(website, "/cars", "/deep")
    article(website, "/tennis", "/", "/cars?utm_source=x")
    article(website, "/deep")
    site = await world.add_site("a.test", max_depth=1)

    crawl = await world.crawl(site)

    assert (crawl.state, crawl.reason) == (CrawlState.FINISHED, None)
    assert (crawl.pages_fetched, crawl.pages_classified, crawl.pages_unchanged, crawl.pages_failed) == (
        3,
        3,
        0,
        0,
    )
    assert await world.pages() == ["/", "/cars", "/tennis"]
    assert sorted(website.paths) == ["/", "/cars", "/robots.txt", "/sitemap.xml", "/tennis"]
    assert website.asked[0].headers["user-agent"].startswith("AdloomBot/1.0 (+")


async def test_a_page_that_has_not_changed_is_not_classified_again(
    world: CrawlWorld, website: Website
) -> None:
    article(website, "/", "/cars")
    article(website, "/cars")
    site = await world.add_site("a.test")
    await world.crawl(site)
    await world.parts.pool.execute("UPDATE site_pages SET expires_at = now() + interval '1 hour'")

    again = await world.crawl(site)

    assert (again.pages_fetched, again.pages_classified, again.pages_unchanged) == (2, 0, 2)
    assert len(world.classifier.requests) == 2
    assert world.told, "followers are told that pages are fresh again"
    left = await world.parts.pool.fetchval("SELECT min(expires_at) - now() FROM site_pages")
    assert left > timedelta(hours=47)

    # One whose categories were given is only renewed: nobody waits for the classifier.
    await world.parts.pool.execute("UPDATE site_pages SET source = 'given', content_hash = NULL")
    given = await world.crawl(site)
    assert (given.pages_fetched, given.pages_classified, given.reason) == (2, 2, None)


async def test_a_server_is_asked_whether_a_page_has_changed(world: CrawlWorld, website: Website) -> None:
    """A page that answers 304 has no links; those of the crawl before are taken."""
    site = await world.add_site("a.test")
    article(website, "/", "/a")
    article(website, "/a", "/b")
    article(website, "/b")
    for path in ("/", "/a"):
        answer = website.replies[path]
        website.say_with(path, answer, ETag='"v1"', Last_Modified="Tue, 17 Nov 2026 01:00:00 GMT")
    await world.crawl(site)
    assert all("if-none-match" not in one.headers for one in website.asked)
    for path in ("/", "/a"):
        website.say(path, b"", status=304, ETag='"v1"')
    website.asked.clear()

    again = await world.crawl(site)

    asked = {one.path: one.headers for one in website.asked}
    assert asked["/"]["if-none-match"] == asked["/a"]["if-none-match"] == '"v1"'
    assert asked["/"]["if-modified-since"] == "Tue, 17 Nov 2026 01:00:00 GMT"
    assert "if-none-match" not in asked["/b"]
    assert (again.pages_fetched, again.pages_unchanged, again.pages_failed) == (3, 3, 0)
    third = await world.crawl(site)
    assert third.pages_unchanged == 3, "the links of the second crawl are known, too"


async def test_robots_txt_is_obeyed(world: CrawlWorld, website: Website) -> None:
    website.say("/robots.txt", "User-agent: *\nDisallow: /private/\nDisallow: /*.php$\n", "text/plain")
    article(website, "/", "/private/cars", "/tennis", "/x.php", "/x.php5")
    article(website, "/tennis")
    article(website, "/x.php5")
    site = await world.add_site("a.test")

    crawl = await world.crawl(site)

    assert await world.pages() == ["/", "/tennis", "/x.php5"]
    assert not {"/private/cars", "/x.php"} & set(website.paths)
    skipped = await world.reasons(site, crawl, UrlState.SKIPPED)
    assert skipped == {"/private/cars": "robots.txt disallows it.", "/x.php": "robots.txt disallows it."}


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_robots_txt_with_a_failure_means_not_now(
    world: CrawlWorld, website: Website, status: int
) -> None:
    website.say("/robots.txt", "", status=status)
    article(website, "/")
    site = await world.add_site("a.test")

    crawl = await world.crawl(site)

    assert crawl.state is CrawlState.FAILED
    assert crawl.reason == f"robots.txt was answered with {status}, so nothing may be fetched now."
    assert website.paths == ["/robots.txt"]


async def test_a_site_that_does_not_answer_is_a_failed_crawl(world: CrawlWorld) -> None:
    crawl = await world.crawl(await world.add_site("nowhere.invalid"))

    assert crawl.state is CrawlState.FAILED
    assert crawl.reason is not None
    assert "nowhere.invalid is not known to DNS" in crawl.reason


async def test_a_crawl_delay_is_kept(world: CrawlWorld, website: Website) -> None:
    website.say("/robots.txt", "User-agent: adloombot\nCrawl-delay: 0.3\n", "text/plain")
    article(website, "/", "/a", "/b")
    article(website, "/a")
    article(website, "/b")
    site = await world.add_site("a.test")

    began = time.monotonic()
    await world.crawl(site)

    assert time.monotonic() - began > 4 * 0.29
    assert website.at_once_most == 1


async def test_a_redirect_waits_for_its_turn_and_keeps_to_the_rules(
    world: CrawlWorld, website: Website
) -> None:
    rules = "User-agent: adloombot\nCrawl-delay: 0.3\nDisallow: /b/\n"
    website.say("/robots.txt", rules, "text/plain")
    article(website, "/", "/a", "/b")
    for path in ("/a", "/b"):
        website.redirect(path, f"{path}/")
        article(website, f"{path}/")
    site = await world.add_site("a.test")

    began = time.monotonic()
    crawl = await world.crawl(site)

    assert time.monotonic() - began > 5 * 0.29
    assert (crawl.pages_fetched, "/a/" in website.paths, "/b/" in website.paths) == (2, True, False)


async def test_at_most_as_many_pages_are_fetched_at_once_as_the_site_wants(
    world: CrawlWorld, website: Website
) -> None:
    website.delay = 0.05
    article(website, "/", *(f"/{number}" for number in range(12)))
    for number in range(12):
        article(website, f"/{number}")
    site = await world.add_site("a.test", crawl_concurrency=3)

    crawl = await world.crawl(site)

    assert (crawl.pages_fetched, website.at_once_most) == (13, 3)


async def test_a_crawl_ends_at_its_number_of_pages(world: CrawlWorld, website: Website) -> None:
    article(website, "/", *(f"/{number}" for number in range(12)))
    for number in range(12):
        article(website, f"/{number}")
    site = await world.add_site("a.test", max_pages=4)

    crawl = await world.crawl(site)

    assert (crawl.state, crawl.pages_fetched) == (CrawlState.FINISHED, 4)
    assert crawl.reason == "It ended at 4 pages, the most that the site wants."
    assert len([path for path in website.paths if path not in {"/robots.txt", "/sitemap.xml"}]) == 4


async def test_pages_of_sitemaps_are_found(world: CrawlWorld, website: Website) -> None:
    website.say("/robots.txt", "Sitemap: https://a.test/maps.xml\n", "text/plain")
    locs = ("one.xml.gz", "maps.xml")
    index = "".join(f"<sitemap><loc>https://a.test/{loc}</loc></sitemap>" for loc in locs)
    website.say("/maps.xml", f"<sitemapindex>{index}</sitemapindex>", "application/xml")
    pages = "".join(f"<url><loc>https://{loc}</loc></url>" for loc in ("a.test/hidden", "other.test/x"))
    urlset = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{pages}</urlset>'
    website.say("/one.xml.gz", gzipped(urlset), "application/gzip")
    article(website, "/")
    article(website, "/hidden")
    site = await world.add_site("a.test")

    await world.crawl(site)

    assert await world.pages() == ["/", "/hidden"]
    assert website.paths.count("/maps.xml") == 1


async def test_what_a_page_says_of_itself_is_respected(world: CrawlWorld, website: Website) -> None:
    article(website, "/", "/copy", "/hidden", "/tagged", "/blind", "/other-robot")
    article(website, "/copy", in_head='<link rel="canonical" href="/original">')
    article(website, "/original")
    article(website, "/hidden", "/from-hidden", in_head='<meta name="robots" content="noindex">')
    article(website, "/from-hidden")
    article(website, "/blind", "/from-blind", in_head='<meta name="robots" content="nofollow">')
    article(website, "/tagged")
    website.say_with("/tagged", website.replies["/tagged"], X_Robots_Tag="noindex")
    article(website, "/other-robot")
    website.say_with("/other-robot", website.replies["/other-robot"], X_Robots_Tag="otherbot: noindex")
    site = await world.add_site("a.test")

    crawl = await world.crawl(site)

    assert await world.pages() == ["/", "/blind", "/from-hidden", "/original", "/other-robot"]
    assert await world.reasons(site, crawl, UrlState.SKIPPED) == {
        "/copy": "Its canonical address is a.test/original.",
        "/hidden": "It asks not to be indexed.",
        "/tagged": "It asks not to be indexed.",
    }
    assert "/from-blind" not in website.paths


async def test_a_canonical_address_that_leads_nowhere_is_not_followed(
    world: CrawlWorld, website: Website
) -> None:
    article(website, "/", "/one", "/copy", "/self")
    article(website, "/one", in_head='<link rel="canonical" href="/other">')
    article(website, "/other", in_head='<link rel="canonical" href="/one">')
    article(website, "/copy", in_head='<link rel="canonical" href="/gone">')
    article(website, "/self", in_head='<link rel="canonical" href="https://www.a.test/self?utm_source=x">')
    site = await world.add_site("a.test")

    crawl = await world.crawl(site)

    assert await world.pages() == ["/", "/copy", "/other", "/self"]
    assert await world.reasons(site, crawl, UrlState.SKIPPED) == {
        "/one": "Its canonical address is a.test/other."
    }
    assert await world.reasons(site, crawl, UrlState.FAILED) == {"/gone": "The server answers 404."}
    assert website.paths.count("/copy") == 2


async def test_links_with_a_user_are_left(world: CrawlWorld, website: Website) -> None:
    article(website, "/", *(f"https://user{number}:x@a.test/{number}" for number in range(3)), "/mail@me")
    article(website, "/mail@me")
    site = await world.add_site("a.test")

    crawl = await world.crawl(site)

    assert await world.pages() == ["/", "/mail@me"]
    assert (crawl.state, crawl.reason) == (CrawlState.FINISHED, None)
    assert website.paths.count("/robots.txt") == 1


async def test_redirects_lead_to_pages_of_the_site_only(pool: Pool, valkey: Valkey, website: Website) -> None:
    async with running_website() as other, open_world(pool, valkey, a=website, b=other) as world:
        article(website, "/", "/old", "/away", "/loop", "/inside")
        article(website, "/new")
        website.redirect("/old", "/new")
        website.redirect("/away", "https://b.test/")
        website.redirect("/loop", "/loop2")
        website.redirect("/loop2", "/loop")
        website.redirect("/inside", "http://127.0.0.1/")
        article(other, "/")
        site = await world.add_site("a.test")

        crawl = await world.crawl(site)

        assert crawl.state is CrawlState.FINISHED
        assert await world.pages() == ["/", "/new"]
        assert other.asked == []
        assert website.paths.count("/new") == 1


async def test_pages_without_text_are_counted_and_named(world: CrawlWorld, website: Website) -> None:
    article(website, "/", "/app", "/nothing", "/file", "/gone", "/broken")
    website.say(
        "/app", "<html><head><title>App</title><script>go()</script></head><body><div id=app></div></body>"
    )
    website.say("/nothing", "")
    website.say("/file", b"%PDF", "application/pdf")
    website.say("/broken", "<p>no gzip", Content_Encoding="gzip")
    site = await world.add_site("a.test")

    crawl = await world.crawl(site)

    assert (crawl.state, crawl.pages_without_text, crawl.pages_failed) == (CrawlState.FINISHED, 2, 2)
    assert crawl.reason == (
        "2 pages could not be fetched. 2 pages had no text without scripts: the tag sends their text from browsers."
    )
    assert await world.reasons(site, crawl, UrlState.SKIPPED) == {
        "/app": "It has no text without scripts.",
        "/nothing": "It has no text without scripts.",
        "/file": "It is no HTML but application/pdf.",
    }
    assert await world.reasons(site, crawl, UrlState.FAILED) == {
        "/gone": "The server answers 404.",
        "/broken": "The answer's compression is broken.",
    }


@pytest.mark.parametrize(("waiting", "note"), [(1, "1 page still waits"), (2, "2 pages still wait")])
def test_a_crawl_says_how_many_of_its_pages_wait_for_the_classifier(waiting: int, note: str) -> None:
    progress = Progress(
        is_cancelled=False,
        fetched=9,
        submitted=5 + waiting,
        classified=5,
        failed=0,
        without_text=0,
        addresses=9,
    )

    _, reason = describe_end(progress, stopped_by=None, first_failure=None)

    assert reason == f"{note} for the classifier."


async def test_a_busy_server_is_asked_again_later(world: CrawlWorld, website: Website) -> None:
    article(website, "/")
    page = website.replies["/"]
    website.say("/", "", status=503, Retry_After="1")
    site = await world.add_site("a.test")
    crawl_id = await world.queue_crawl(site)

    crawling = asyncio.ensure_future(world.run(crawl_id))
    await asyncio.sleep(0.5)
    website.replies["/"] = page
    await crawling

    assert (await world.read(site, crawl_id)).pages_fetched == 1
    assert website.paths.count("/") == 2


async def test_subdomains_are_of_the_site_unless_its_pattern_says_otherwise(
    pool: Pool, valkey: Valkey, website: Website
) -> None:
    async with (
        running_website() as blog,
        running_website() as shop,
        open_world(pool, valkey, **{"a": website, "blog.a": blog, "shop.a": shop}) as world,
    ):
        article(website, "/", "https://blog.a.test/", "https://shop.a.test/", "https://www.a.test/")
        article(blog, "/")
        article(shop, "/")
        site = await world.add_site("a.test", host_pattern="(blog[.])?a[.]test")

        crawl = await world.crawl(site)

        assert crawl.pages_fetched == 2
        assert (len(blog.asked), shop.asked) == (2, [])


async def test_a_site_is_crawled_once_at_a_time(world: CrawlWorld) -> None:
    site = await world.add_site("a.test")
    await world.queue_crawl(site)

    with pytest.raises(CrawlRunningError):
        await world.queue_crawl(site)


async def test_a_crawl_goes_on_from_where_it_was_stopped(world: CrawlWorld, website: Website) -> None:
    website.delay = 0.05
    article(website, "/", *(f"/{number}" for number in range(30)))
    for number in range(30):
        article(website, f"/{number}")
    site = await world.add_site("a.test", crawl_concurrency=2)
    crawl_id = await world.queue_crawl(site)
    crawling = asyncio.ensure_future(world.run(crawl_id))
    await eventually(lambda: len(website.paths) > 6, seconds=30)

    world.stop.set()
    with pytest.raises(CrawlInterruptedError):
        await crawling
    asked_before = len(website.paths)
    world.stop.clear()
    await world.run(crawl_id)

    crawl = await world.read(site, crawl_id)
    assert asked_before < 30
    assert (crawl.state, crawl.pages_fetched, crawl.pages_classified) == (CrawlState.FINISHED, 31, 31)
    twice = {path for path in website.paths if website.paths.count(path) > 1}
    assert len(twice - {"/robots.txt", "/sitemap.xml"}) <= 2, "only what was on its way is fetched again"
    assert len({request.url for request in world.classifier.requests}) == 31


async def test_a_crawl_that_is_cancelled_ends_at_once(world: CrawlWorld, website: Website) -> None:
    website.delay = 0.5
    article(website, "/", *(f"/{number}" for number in range(30)))
    site = await world.add_site("a.test")
    crawl_id = await world.queue_crawl(site)
    crawling = asyncio.ensure_future(world.run(crawl_id))
    await asyncio.sleep(0.3)

    await world.parts.pool.execute("UPDATE site_crawls SET is_cancelled = true")
    async with asyncio.timeout(60):
        await crawling

    crawl = await world.read(site, crawl_id)
    assert (crawl.state, crawl.reason) == (CrawlState.FAILED, "It was cancelled.")


async def test_a_crawl_ends_after_thirty_minutes_in_all(world: CrawlWorld, website: Website) -> None:
    article(website, "/", "/a")
    article(website, "/a")
    site = await world.add_site("a.test")
    crawl_id = await world.queue_crawl(site)
    await world.parts.pool.execute(
        "UPDATE site_crawls SET started_at = now() - interval '31 minutes', pages_fetched = 1"
    )

    await world.run(crawl_id)

    crawl = await world.read(site, crawl_id)
    assert (crawl.state, crawl.reason) == (CrawlState.FINISHED, "It ended after 30 minutes.")
