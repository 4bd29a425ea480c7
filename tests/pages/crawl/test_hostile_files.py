"""Robots and sitemap files of every kind: read as far as they go, in bounded time, and never an error."""

import gzip
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.pages.crawl import robots
from adloom.pages.crawl.fetch import read_robots_header
from adloom.pages.crawl.frontier import find_pages, read_address
from adloom.pages.crawl.robots import RobotsRules, is_not_now, name_robot, read_rules
from adloom.pages.crawl.sitemaps import URLS_MAX, read_sitemap
from adloom.targeting.site_hosts import SiteHosts
from tests.support.for_each import for_each

HOSTS = SiteHosts("a.test")
URL = "https://a.test/x/y?z=1"


def rules_of(text: str | bytes, *, status: int = 200) -> RobotsRules:
    return read_rules(status, text.encode() if isinstance(text, str) else text, robot="AdloomBot")


@for_each(
    ("text", "allowed"),
    [
        ("", True),
        ("User-agent: *\nDisallow: /", False),
        ("User-agent: *\nDisallow:", True),
        ("User-agent: *\nDisallow: /x\nAllow: /x/y", True),
        ("User-agent: OtherBot\nDisallow: /", True),
        ("User-agent: adloombot\nDisallow: /\n\nUser-agent: *\nAllow: /", False),
        ("User-agent: adloombot\nAllow: /\n\nUser-agent: *\nDisallow: /", True),
        ("User-agent: a\nUser-agent: AdloomBot/1.0\nUser-agent: b\nDisallow: /", False),
        ("User-agent: adloombotx\nDisallow: /", True),
        ("USER-AGENT: *\r\nDISALLOW: /x # here", False),
        ("\ufeffUser-agent: *\nDisallow: /", False),
        ("User-agent: *\nDisallow: /*?z=", False),
        ("User-agent: *\nDisallow: /x/y$", True),
        ("Disallow: /", True),
        ("<html>not found</html>", True),
    ],
)
def test_rules_are_read_as_the_rfc_says(text: str, allowed: bool) -> None:  # noqa: FBT001 - a table
    assert rules_of(text).allows(URL) is allowed


def test_a_group_for_others_is_not_joined_with_ours() -> None:
    text = "User-agent: *\nDisallow: /p\n\nUser-agent: x\nUser-agent: y\nDisallow: /\n\nUser-agent: z\nDisallow: /x"

    assert rules_of(text).allows(URL)
    assert not rules_of(text).allows("https://a.test/p")


@for_each(
    ("status", "wanted"),
    [(200, False), (404, False), (403, False), (429, True), (500, True), (503, True), (302, True)],
)
def test_a_failure_of_the_server_means_not_now(status: int, wanted: bool) -> None:  # noqa: FBT001 - a table
    assert is_not_now(status) is wanted


def test_a_file_that_is_not_there_allows_everything() -> None:
    assert rules_of("User-agent: *\nDisallow: /", status=404).allows(URL)


def test_what_follows_the_bound_is_not_read() -> None:
    text = "User-agent: *\nAllow: /\n" + "# comment\n" * (robots.BYTES_MAX // 10) + "Disallow: /x\n"

    assert rules_of(text).allows(URL)


@for_each(
    ("text", "seconds"),
    [("5", 5.0), ("0.5", 0.5), ("9999", 30.0), ("-1", 0.0), ("nan", 0.0), ("inf", 0.0), ("x", 0.0)],
)
def test_a_crawl_delay_is_bounded(text: str, seconds: float) -> None:
    assert rules_of(f"User-agent: *\nCrawl-delay: {text}\n").crawl_delay_seconds == seconds


# Made when a test asks for one: 50 MB would be held until the last test.
GIANTS: dict[str, Callable[[], bytes]] = {
    "one line of 10 MB": lambda: b"Disallow: /" + b"a" * 10_000_000,
    "wildcards": lambda: b"User-agent: *\n" + b"Disallow: /" + b"*a" * 2_000 + b"b\n",
    "many wildcards": lambda: b"User-agent: *\n" + (b"Disallow: /" + b"*a" * 50 + b"\n") * 4_000,
    "many robots with many rules": lambda: (
        b"".join(b"User-agent: x%d\n" % n for n in range(15_000)) + b"Disallow: /a\n" * 20_000
    ),
    "robots with stars": lambda: (
        b"".join(b"User-agent: *x%d*\n" % n for n in range(20_000)) + b"Disallow: /a\n" * 10_000
    ),
    "rules without end": lambda: (
        b"User-agent: *\n" + b"".join(b"Disallow: /%d$\n" % n for n in range(40_000))
    ),
    "sitemaps": lambda: b"Sitemap: https://a.test/s.xml\n" * 20_000,
    "binary": lambda: bytes(range(256)) * 4_000,
    "utf-16": lambda: "User-agent: *\nDisallow: /".encode("utf-16"),
    "percents": lambda: b"User-agent: *\nDisallow: /" + b"%" * 4_000 + b"%zz%e4%b8\n",
    "nulls": lambda: b"\0" * 1_000_000,
}


@for_each("name", GIANTS)
def test_a_hostile_robots_file_costs_little(name: str) -> None:
    body = GIANTS[name]()
    tracemalloc.start()
    began = time.process_time()

    rules = rules_of(body)
    for number in range(20):
        rules.allows(f"https://a.test/{'a' * 1_000}{number}")
    _ = rules.crawl_delay_seconds, rules.sitemaps

    seconds, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 5, "with tracing, which costs most of it"
    assert peak < 60_000_000
    assert len(rules.sitemaps) <= robots.SITEMAPS_MAX


@given(st.binary(max_size=2_000))
def test_any_bytes_are_rules(body: bytes) -> None:
    rules = rules_of(body)

    assert rules.allows(URL) in {True, False}
    assert 0 <= rules.crawl_delay_seconds <= 30


@given(
    st.lists(
        st.builds(
            "{}: {}".format,
            st.sampled_from(
                ["User-agent", "Disallow", "Allow", "Crawl-delay", "Sitemap", "Request-rate", "Visit-time"]
            ),
            st.text(max_size=30),
        )
    )
)
def test_any_lines_are_rules(lines: list[str]) -> None:
    assert rules_of("\n".join(lines)).allows(URL) in {True, False}


@pytest.mark.parametrize(
    ("agent", "robot"), [("AdloomBot/1.0 (+https://x)", "AdloomBot"), ("My Bot/2", "My Bot")]
)
def test_a_robot_is_named_by_its_product(agent: str, robot: str) -> None:
    assert name_robot(agent) == robot


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        ("", {""}),
        ("noindex, nofollow", {"noindex", "nofollow"}),
        ("otherbot: noindex", set[str]()),
        ("AdloomBot: NOINDEX, nofollow", {"noindex", "nofollow"}),
        ("googlebot: noindex, adloombot: nofollow", {"nofollow"}),
        (
            "unavailable_after: 25 Jun 2010 15:00:00 PST, noindex",
            {"unavailable_after: 25 jun 2010 15:00:00 pst", "noindex"},
        ),
    ],
)
def test_rules_in_a_header_are_for_all_or_for_us(value: str, rules: set[str]) -> None:
    assert read_robots_header(value, "AdloomBot") == rules


def urlset(*urls: str) -> str:
    entries = "".join(f"<url><loc> {url} </loc><lastmod>2026-01-01</lastmod></url>" for url in urls)
    return (
        f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    )


def test_a_sitemap_names_pages() -> None:
    sitemap = read_sitemap(urlset("https://a.test/1", "https://a.test/2?a=1&amp;b=2").encode())

    assert sitemap.urls == ("https://a.test/1", "https://a.test/2?a=1&b=2")
    assert (sitemap.sitemaps, sitemap.reason) == ((), None)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_sitemap_may_be_compressed_and_in_other_encodings(encoding: str) -> None:
    body = urlset("https://a.test/ü").encode(encoding)

    assert read_sitemap(body).urls == read_sitemap(gzip.compress(body)).urls == ("https://a.test/ü",)


def test_a_text_with_an_address_a_line_is_a_sitemap() -> None:
    assert read_sitemap(b"https://a.test/1\r\nhttps://a.test/2\n\nnone\n").urls == (
        "https://a.test/1",
        "https://a.test/2",
    )


def test_an_index_names_sitemaps() -> None:
    body = "<sitemapindex><sitemap><loc>https://a.test/1.xml</loc></sitemap></sitemapindex>"

    assert read_sitemap(body.encode()).sitemaps == ("https://a.test/1.xml",)


BOMB = """<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c SYSTEM "file:///etc/passwd">]><urlset><url><loc>https://a.test/&b;&c;</loc></url></urlset>"""


@pytest.mark.parametrize(
    "body", [BOMB.encode(), BOMB.encode("utf-16"), BOMB.lower().encode(), gzip.compress(BOMB.encode())]
)
def test_entities_are_not_read(body: bytes) -> None:
    sitemap = read_sitemap(body)

    assert sitemap.urls == ()
    assert sitemap.reason


HOSTILE_SITEMAPS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "binary": lambda: bytes(range(256)) * 1_000,
    "unclosed": lambda: urlset(*(f"https://a.test/{n}" for n in range(10))).encode()[:-20],
    "one line of 10 MB": lambda: b"<urlset><url><loc>" + b"a" * 10_000_000,
    "text line of 10 MB": lambda: b"https://a.test/" + b"a" * 10_000_000,
    "deep": lambda: b"<a>" * 200_000,
    "attributes": lambda: b"<urlset " + b"".join(b'a%d="x" ' % n for n in range(100_000)) + b">",
    "wrong encoding": lambda: b'<?xml version="1.0" encoding="klingon"?><urlset/>',
    "utf-7": lambda: b'<?xml version="1.0" encoding="utf-7"?><urlset/>',
    "nulls": lambda: b"<urlset>\0\0\0",
    "gzip bomb": lambda: gzip.compress(bytes(50_000_000)),
    "gzip of a part": lambda: gzip.compress(urlset("https://a.test/1").encode())[:40],
    "no gzip": lambda: b"\x1f\x8b\x08nonsense",
    "html": lambda: b"<!doctype html><html><body><p>Not here</body></html>",
    "many": lambda: urlset(*(f"https://a.test/{n}" for n in range(30_000))).encode(),
}


@for_each("name", HOSTILE_SITEMAPS)
def test_a_hostile_sitemap_costs_little_and_raises_nothing(name: str) -> None:
    body = HOSTILE_SITEMAPS[name]()
    began = time.process_time()

    sitemap = read_sitemap(body)

    assert time.process_time() - began < 2
    assert len(sitemap.urls) <= URLS_MAX
    assert sitemap.urls or sitemap.reason


def test_what_is_before_a_mistake_counts() -> None:
    assert len(read_sitemap(HOSTILE_SITEMAPS["unclosed"]()).urls) >= 9


@given(
    st.binary(max_size=2_000)
    | st.text(max_size=500).map(lambda text: f"<urlset>{text}</urlset>".encode("utf-8", "replace"))
)
def test_any_bytes_are_a_sitemap(body: bytes) -> None:
    sitemap = read_sitemap(body)

    assert find_pages(sitemap.urls, HOSTS) is not None


@given(st.text(max_size=300) | st.text(max_size=50).map(lambda path: f"https://a.test/{path}"))
def test_any_text_is_an_address_of_the_site_or_none(address: str) -> None:
    found = read_address(address, HOSTS)

    assert found is None or found.url.startswith("a.test")


@for_each(
    "address",
    [
        "https://b.test/",
        "https://a.test.evil.example/",
        "https://xa.test/",
        "https://a.test:8080/",
        "https://a.test@evil.example/",
        "https://evil.example\\@a.test/",
        "http://a.test/film.MP4",
        "ftp://a.test/",
        "javascript:alert(1)",
        "https://a.test/" + "x" * 3_000,
    ],
)
def test_an_address_of_another_site_or_no_page_is_not_taken_up(address: str) -> None:
    assert read_address(address, HOSTS) is None


def test_a_colon_in_the_query_of_the_front_page_is_no_port() -> None:
    found = read_address("https://a.test/?p=12&at=12:30", HOSTS)

    assert found is not None
    assert found.url == "a.test?at=12:30&p=12"
