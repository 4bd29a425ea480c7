"""A page's text, title, description, language and links are read; broken HTML is a named failure, never an error."""

import gc
import time
from collections.abc import Callable

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.pages.text.extract import (
    HTML_BYTES_MAX,
    LINKS_MAX,
    TEXT_CHARACTERS_KEPT,
    TextExtractor,
    decode_html,
)
from adloom.pages.text.extracted import ExtractedPage, UnreadablePage
from tests.support.for_each import for_each

ADDRESS = "https://paper.test/cars/story"
STORY = (
    "We drove five small electric cars until their batteries were nearly flat, and plugged them in. "
    "The hatchback with the larger battery was ready after 28 minutes, the cheapest car needed an hour."
)
MENU = "".join(f'<li><a href="/section{number}">Section {number}</a></li>' for number in range(30))


def a_page(
    *, head: str = "", article: str = f"<p>{STORY}</p>", body: str = "", attributes: str = ""
) -> bytes:
    return (
        f"<!doctype html><html {attributes}><head><meta charset=utf-8><title>Five cars | The Paper</title>{head}"
        f"</head><body><nav><ul>{MENU}</ul></nav><main><article><h1>Five cars</h1>{article}</article></main>{body}"
        "<footer>Imprint and privacy</footer></body></html>"
    ).encode()


def read(body: bytes, **options: str) -> ExtractedPage:
    page = TextExtractor().extract(body, address=ADDRESS, **options)
    assert isinstance(page, ExtractedPage), page
    return page


def test_the_article_is_read_without_menu_and_footer() -> None:
    page = read(a_page(head='<meta name="description" content="A test  drive.">', attributes='lang="en-GB"'))

    assert page.text == STORY
    assert (page.title, page.description, page.language) == ("Five cars", "A test drive.", "en")
    assert page.has_text


@for_each(
    "oddity",
    [
        "\f", "\x0b", "\x1e", "&#12;", "&#30;", "\ufffe", "&#xD800;", '<img alt="\x02">', "<b {{hidden}}>x</b>",
        "<b<i>x</b<i>", '<b @click="x" :a [b]="c" (d)="e" {f}=g>x</b>', "<1>", "<o:p>x</o:p>", "<p =a 'b>",
    ],
)  # fmt: skip
def test_what_no_tree_can_have_keeps_no_page_from_being_read(oddity: str) -> None:
    page = read(a_page(article=f"{oddity}<p>{STORY}</p>", attributes='class="a\x03"'))

    assert STORY in page.text


def test_a_title_that_begins_the_first_word_leaves_it_whole() -> None:
    page = read(f"<title>Five</title><body><main><p>Fivefold {STORY}</p></main>".encode())

    assert page.text.startswith("Fivefold ")


def test_the_language_is_detected_where_the_page_does_not_say_it() -> None:
    german = "<p>Der Stadtrat hat beschlossen, die Brücke für zwei Jahre zu sperren, und die Läden müssen warten.</p>"

    assert read(a_page(article=german * 2)).language == "de"
    assert read(a_page(article=german * 2, attributes='lang="fr"')).language == "fr"


def test_the_hash_is_of_what_the_page_says_and_not_of_its_html() -> None:
    page = read(a_page())

    assert (
        read(a_page(attributes='class="night"', body="<script>track(1)</script>")).content_hash
        == page.content_hash
    )
    assert read(a_page(article=f"<p>{STORY} It rained.</p>")).content_hash != page.content_hash


def test_links_and_canonical_are_absolute_and_each_is_there_once() -> None:
    body = (
        '<a href="/a#top">A</a><a href="/a">A</a><a href="b?x=1">B</a><a href="https://other.test/">O</a>'
        '<a rel="nofollow" href="/paid">P</a><a href="mailto:x@y.test">M</a><a href="javascript:void(0)">J</a>'
        '<a href="http://[broken">X</a><a href="ftp://paper.test/f">F</a>'
    )
    page = read(a_page(head='<link rel="canonical" href="/cars/story">', body=body))

    assert page.canonical == "https://paper.test/cars/story"
    assert page.links[30:] == ("https://paper.test/a", "https://paper.test/cars/b?x=1", "https://other.test/")


def test_links_follow_the_base_and_are_bounded() -> None:
    body = "".join(f"<a href='{number}'>x</a>" for number in range(3 * LINKS_MAX))
    page = read(a_page(head='<base href="https://paper.test/base/">', body=body))

    assert len(page.links) == LINKS_MAX
    assert page.links[-1].startswith("https://paper.test/base/")


@pytest.mark.parametrize(
    ("content", "is_noindex", "is_nofollow"),
    [
        ("noindex", True, False),
        ("NOINDEX, nofollow", True, True),
        ("none", True, True),
        ("index", False, False),
        ("noindex nofollow", True, True),
        ("index, follow, max-image-preview:none", False, False),
    ],
)
def test_what_robots_may_do_is_read(content: str, is_noindex: bool, is_nofollow: bool) -> None:  # noqa: FBT001
    page = read(a_page(head=f'<meta name="robots" content="{content}">'))

    assert (page.is_noindex, page.is_nofollow) == (is_noindex, is_nofollow)


def test_a_page_that_scripts_make_has_no_text() -> None:
    page = read(
        b"<html><head><title>App</title></head><body><div id=app></div><script>run()</script></body></html>"
    )

    assert (page.text, page.has_text) == ("", False)


@for_each(
    ("body", "charset", "text"),
    [
        ("Brücke".encode(), None, "Brücke"),
        ("Brücke".encode("cp1252"), None, "Brücke"),
        ("Brücke".encode("latin-1"), "ISO-8859-1", "Brücke"),
        ("Brücke".encode("utf-16"), None, "Brücke"),
        ("<meta charset=windows-1251>мост".encode("cp1251"), None, "<meta charset=windows-1251>мост"),
        ("橋".encode("shift_jis"), "Shift_JIS", "橋"),
        ("Brücke".encode(), "no-such", "Brücke"),
        ("Brücke".encode(), "base64", "Brücke"),
        ("Brücke".encode(), "rot13", "Brücke"),
        ("Brücke".encode(), "utf-7", "Brücke"),
        (b"Br\xc3\xbccke \xff", "utf-8", "Brücke \ufffd"),
    ],
)
def test_a_page_is_decoded_by_the_charset_that_it_has(body: bytes, charset: str | None, text: str) -> None:
    assert decode_html(body, charset) == text


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (b"", UnreadablePage.EMPTY),
        (b" \n\t", UnreadablePage.EMPTY),
        (b"<!-- only a comment -->", UnreadablePage.EMPTY),
        (b"Just words", UnreadablePage.NOT_HTML),
        (b"<p>" + b"a" * HTML_BYTES_MAX, UnreadablePage.TOO_LARGE),
    ],
)
def test_what_cannot_be_read_is_named(body: bytes, failure: UnreadablePage) -> None:
    assert TextExtractor().extract(body, address=ADDRESS) is failure


HOSTILE: dict[str, Callable[[], bytes]] = {
    "100,000 deep": lambda: b"<div>" * 100_000 + b"deep",
    "deep tables": lambda: b"<table><tr><td>" * 30_000,
    "100,000 attributes": lambda: (
        b"<div " + b" ".join(b"a%d=1" % number for number in range(100_000)) + b">x"
    ),
    "unclosed": lambda: b"<p>word " * 100_000,
    "null bytes": lambda: b"<html>\0\0<p>" + b"\0" * 1_000_000,
    "only <": lambda: b"<" * 1_000_000,
    "one word": lambda: b"<p>" + b"a" * 1_500_000,
    "links": lambda: b"<a href=/x>y</a>" * 100_000,
    "comments": lambda: b"<!--" * 300_000,
    "binary": lambda: bytes(range(256)) * 4_000,
    "doctypes": lambda: b"<!DOCTYPE html [" * 10_000,
    "entities": lambda: b"<p>" + b"&#x110000;&amp;&bogus;&#0;" * 10_000,
}


@for_each("name", HOSTILE)
def test_hostile_html_ends_soon_and_within_bounds(name: str) -> None:
    body = HOSTILE[name]()
    began = time.process_time()

    page = TextExtractor().extract(body, address=ADDRESS)

    assert time.process_time() - began < 5
    assert isinstance(page, UnreadablePage) or len(page.text) <= TEXT_CHARACTERS_KEPT


TAGS = st.sampled_from(
    ["<p>", "</p>", "<div class=x>", "</div>", "<table><tr><td>", "</table>", "<script>", "</script>", "<title>",
     "<h1>", "<a href='//[x'>", "<base href=x>", "<meta name=robots content>", "<ul><li>", "<pre>", "<!--", "-->",
     "<![CDATA[", "]]>", "<?xml version='1.0' encoding='utf-16'?>", "<svg>", "<select>", "</body>", "</html>", "<q>",
     "&#0;", "&", "<", "\0", "<html lang=''>", "<frameset>", "<blockquote>", "<code>", "<iframe>", "<details>"]
)  # fmt: skip


@given(st.lists(st.one_of(TAGS, st.text(max_size=40), st.just(STORY)), max_size=30))
def test_any_html_is_read_or_refused(pieces: list[str]) -> None:
    page = TextExtractor().extract("".join(pieces).encode("utf-8", "replace"), address=ADDRESS)

    assert isinstance(page, ExtractedPage | UnreadablePage)


@given(st.binary(max_size=400), st.one_of(st.none(), st.text(max_size=12)))
def test_any_bytes_are_read_or_refused(body: bytes, charset: str | None) -> None:
    page = TextExtractor().extract(body, address=ADDRESS, charset=charset)

    assert isinstance(page, ExtractedPage | UnreadablePage)


@pytest.mark.slow
def test_memory_is_flat_over_hundreds_of_pages() -> None:
    extractor = TextExtractor()

    def read_pages(first: int, count: int) -> None:
        for number in range(first, first + count):
            words = " ".join(f"word{number}x{index}" for index in range(300))
            extractor.extract(a_page(article=f"<p>{STORY} {words}</p>" * 3), address=f"{ADDRESS}{number}")

    read_pages(0, 200)
    gc.collect()
    before = psutil.Process().memory_info().rss
    read_pages(200, 500)
    gc.collect()

    assert psutil.Process().memory_info().rss - before < 5 * 2**20
