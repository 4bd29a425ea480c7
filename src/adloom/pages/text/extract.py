"""One parse of a page: its main text, and what its head and links say. Nothing that a page sends raises an error."""

import logging
import re
from typing import Any, Final, cast
from urllib.parse import urljoin

from trafilatura import bare_extraction
from trafilatura.meta import reset_caches
from trafilatura.settings import use_config

from adloom.pages.classify.request import (
    DESCRIPTION_CHARACTERS_MAX,
    TITLE_CHARACTERS_MAX,
    hash_content,
)
from adloom.pages.text.charset import decode_html
from adloom.pages.text.extracted import TEXT_CHARACTERS_MIN, ExtractedPage, UnreadablePage
from adloom.pages.text.language import detect_language, read_language_tag
from adloom.pages.text.tree import HtmlElement, HtmlError, parse_tree

HTML_BYTES_MAX: Final = 2 * 2**20
LINKS_MAX: Final = 1_000
ADDRESS_CHARACTERS_MAX: Final = 2_048
TEXT_CHARACTERS_KEPT: Final = 64 * 2**10
# The caches of trafilatura keep pieces of every page; they are emptied after so much HTML, which takes milliseconds.
CACHED_BYTES_MAX: Final = 4 * 2**20

_config: Final = use_config()
_config.set("DEFAULT", "MIN_OUTPUT_SIZE", "1")
# It reports pages by their text; what a page says is never in a log line.
for _name in ("trafilatura", "htmldate", "courlan", "justext"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


class TextExtractor:
    """Reads pages, one at a time; memory stays flat over thousands of them."""

    def __init__(self) -> None:
        self._cached_bytes = 0

    def extract(
        self, body: bytes, *, address: str, charset: str | None = None
    ) -> ExtractedPage | UnreadablePage:
        """Read a page that was fetched from an address, or say why it cannot be read."""
        self._cached_bytes += len(body)
        if self._cached_bytes > CACHED_BYTES_MAX:
            self._cached_bytes = 0
            reset_caches()
        if len(body) > HTML_BYTES_MAX:
            return UnreadablePage.TOO_LARGE
        text = decode_html(body, charset)
        if not text.strip():
            return UnreadablePage.EMPTY
        if "<" not in text:
            return UnreadablePage.NOT_HTML
        try:
            return _read(text, address)
        except (
            HtmlError,
            ValueError,
            TypeError,
            AttributeError,
            IndexError,
            KeyError,
            AssertionError,
            RecursionError,
        ):
            # What lxml and trafilatura raise for HTML that their authors never saw.
            return UnreadablePage.BROKEN


def _read(text: str, address: str) -> ExtractedPage | UnreadablePage:
    tree = parse_tree(text)
    if tree is None:
        return UnreadablePage.EMPTY
    head = _read_head(tree)
    links = _read_links(tree, address)
    title = _choose_title(tree, head)
    main_text = _read_main_text(tree).removeprefix(title).lstrip()
    description = (head.get("description") or head.get("og:description") or "")[:DESCRIPTION_CHARACTERS_MAX]
    robots = f"{head.get('robots', '')},{head.get('adloombot', '')}".lower()
    return ExtractedPage(
        title=title,
        description=description,
        text=main_text,
        language=_choose_language(tree, head, f"{title} {description} {main_text}"),
        content_hash=hash_content(title, description, main_text),
        canonical=_read_canonical(tree, address),
        links=links,
        is_noindex="noindex" in robots or "none" in robots,
        is_nofollow="nofollow" in robots or "none" in robots,
    )


def _read_main_text(tree: HtmlElement) -> str:
    """Extract the article without menus, comments and the like; where there is none, all text of the body."""
    document = cast(
        "Any",
        bare_extraction(
            cast("Any", tree), fast=True, include_comments=False, deduplicate=False, config=_config
        ),
    )
    text = _join(cast("str | None", document.text) if document is not None else None)
    if len(text) < TEXT_CHARACTERS_MIN:
        body = tree.find("body")
        if body is not None:
            whole = _join(" ".join(body.itertext()))
            text = max(text, whole, key=len) if len(whole) < 4 * TEXT_CHARACTERS_MIN or not text else text
    return text[:TEXT_CHARACTERS_KEPT]


def _read_head(tree: HtmlElement) -> dict[str, str]:
    """Return the contents of the page's `meta` elements by name; the first of a name counts."""
    found: dict[str, str] = {}
    for element in tree.iter("meta"):
        name = element.get("name") or element.get("property") or element.get("http-equiv") or ""
        content = _join(element.get("content"))
        if name and content:
            found.setdefault(name.strip().lower(), content)
    return found


def _choose_title(tree: HtmlElement, head: dict[str, str]) -> str:
    """Prefer the headline where the title contains it: titles often end in the site's name."""
    title = _join(next((element.text_content() for element in tree.iter("title")), ""))
    heading = _join(next((element.text_content() for element in tree.iter("h1")), ""))
    if heading and heading.lower() in title.lower():
        title = heading
    return (head.get("og:title") or title or heading)[:TITLE_CHARACTERS_MAX]


def _choose_language(tree: HtmlElement, head: dict[str, str], text: str) -> str | None:
    named = read_language_tag(tree.get("lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang"))
    return named or read_language_tag(head.get("content-language")) or detect_language(text)


def _read_canonical(tree: HtmlElement, address: str) -> str | None:
    for element in tree.iter("link"):
        if "canonical" in (element.get("rel") or "").lower().split():
            return _join_address(address, element.get("href"))
    return None


def _read_links(tree: HtmlElement, address: str) -> tuple[str, ...]:
    """Return the page's links in order, each once, without those that are marked `nofollow`."""
    base = address
    for element in tree.iter("base"):
        base = _join_address(address, element.get("href")) or address
        break
    hrefs: dict[str, None] = {}
    for element in tree.iter("a"):
        href = element.get("href")
        if not href or href.startswith(("#", "javascript:", "mailto:", "tel:", "data:")):
            continue
        rel = element.get("rel")
        if rel is None or "nofollow" not in rel.lower().split():
            hrefs[href.partition("#")[0].strip()] = None
            if len(hrefs) >= LINKS_MAX:
                break
    return tuple(dict.fromkeys(link for href in hrefs if (link := _join_address(base, href)) is not None))


def _join_address(base: str, href: str | None) -> str | None:
    if not href or len(href) > ADDRESS_CHARACTERS_MAX:
        return None
    try:
        address = urljoin(base, href.strip()).partition("#")[0]
    except ValueError:
        return None
    is_usable = address.startswith(("http://", "https://")) and len(address) <= ADDRESS_CHARACTERS_MAX
    return address if is_usable else None


_SPACE: Final = re.compile(r"\s+")


def _join(text: str | None) -> str:
    return _SPACE.sub(" ", text).strip() if text else ""
