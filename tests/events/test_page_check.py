"""Whether a report comes from a page of the placement's site."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.events.ingest.ivt.pages import CACHED_BYTES_MAX, PageCheck, PageOrigin
from tests.support.for_each import for_each

SITE = "news.example"
PAGES = PageCheck("https://ads.example:8443")
OF_SITE, OTHER, UNKNOWN = PageOrigin.OF_SITE, PageOrigin.OTHER, PageOrigin.UNKNOWN


def judge(site: str = SITE, page_url: str | None = None, **headers: str) -> PageOrigin:
    values = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    return PAGES.judge(site, values, page_url)


@for_each(
    ("referer", "expected"),
    [
        ("https://news.example/", OF_SITE),
        ("http://news.example", OF_SITE),
        ("HTTPS://WWW.News.Example:444/a?b#c", OF_SITE),
        ("https://a.b.news.example/x", OF_SITE),
        ("https://fakenews.example/", OTHER),
        ("https://news.example.evil.example/", OTHER),
        ("https://evil.example/news.example", OTHER),
        ("https://evil.example?https://news.example/", OTHER),
        ("https://evil.example#@news.example", OTHER),
        ("https://news.example@evil.example/", OTHER),
        ("https://evil.example\\\\@news.example/", OTHER),
        ("https:///", OTHER),
        ("https://[2001:db8::1]/", OTHER),
        ("https://203.0.113.7/", OTHER),
        ("https://localhost.evil.example/", OTHER),
        ("https://127.0.0.1.evil.example/", OTHER),
        ("http://127.0.0.1:8080/sample", OF_SITE),
        ("http://127.9.9.9/", OF_SITE),
        ("http://[::1]:8080/", OF_SITE),
        ("http://localhost:3000/", OF_SITE),
        ("http://shop.localhost/", OF_SITE),
        ("https://ads.example/serve/home.html", OF_SITE),
        ("null", UNKNOWN),
        ("", UNKNOWN),
        ("about:blank", UNKNOWN),
        ("android-app://com.news.reader/", UNKNOWN),
        ("file:///home/a.html", UNKNOWN),
        ("news.example", UNKNOWN),
    ],
)
def test_a_page_is_of_a_site_by_its_host(referer: str, expected: PageOrigin) -> None:
    assert judge(referer=referer) is expected
    assert judge(origin=referer) is expected
    assert judge(page_url=referer) is expected


def test_without_any_address_it_is_not_known() -> None:
    assert judge() is UNKNOWN


@pytest.mark.parametrize(
    ("headers", "page_url", "expected"),
    [
        # A page can write what it wants into a report, and not into the headers.
        ({"origin": "https://evil.example"}, "https://news.example/", OTHER),
        ({"referer": "https://evil.example/"}, "https://news.example/", OTHER),
        # A frame of ours is known by what it says of the page around it.
        ({"referer": "https://ads.example/serve/home.html"}, "https://evil.example/", OTHER),
        ({"referer": "https://ads.example/serve/home.html"}, "https://news.example/", OF_SITE),
        ({"origin": "null"}, "https://news.example/", OF_SITE),
        ({"origin": "null", "referer": "https://evil.example/"}, None, OTHER),
    ],
)
def test_every_address_has_to_be_of_the_site(
    headers: dict[str, str], page_url: str | None, expected: PageOrigin
) -> None:
    assert judge(page_url=page_url, **headers) is expected


def test_a_site_with_www_has_pages_without_it() -> None:
    assert judge("www.news.example", referer="https://news.example/") is OF_SITE


@given(
    address=st.text(max_size=2 * CACHED_BYTES_MAX),
    prefix=st.sampled_from(["", "https://", "http://["]),
)
def test_any_text_is_judged(address: str, prefix: str) -> None:
    assert judge(page_url=prefix + address) in PageOrigin
