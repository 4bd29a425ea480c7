"""One parse of a page: its main text, and what its head and links say. Nothing that a page sends raises an error."""

import codecs
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, cast
from urllib.parse import urljoin

from lxml import etree as _untyped_etree  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from lxml import html as _untyped_html
from trafilatura import bare_extraction
from trafilatura.meta import reset_caches
from trafilatura.settings import use_config

from adloom.pages.classify.request import (
    DESCRIPTION_CHARACTERS_MAX,
    TITLE_CHARACTERS_MAX,
    hash_content,
)
from adloom.pages.text.extracted import TEXT_CHARACTERS_MIN, ExtractedPage, UnreadablePage
from adloom.pages.text.language import detect_language, read_language_tag

DECLARATION_BYTES_READ: Final = 1_024
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
# What browsers read as its superset; and codecs of Python that are no charsets.
_READ_AS: Final = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "utf-16": "utf-8",
}
_NOT_TEXT: Final = frozenset(
    {"base64", "bz2", "hex", "quopri", "rot-13", "uu", "zlib", "idna", "punycode", "undefined"}
)


def decode_html(body: bytes, charset: str | None) -> str:
    """Decode a page by the charset that its server or itself names; bytes that fit none are replaced."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    declared = _DECLARED.search(body[:DECLARATION_BYTES_READ])
    for name in (charset, declared[1].decode("ascii", "replace") if declared else None):
        known = _find_codec(name)
        if known is not None:
            return body.decode(known, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _find_codec(name: str | None) -> str | None:
    """Return Python's name of a charset; one in which `<html>` is written in ASCII, or none."""
    if not name:
        return None
    try:
        codec = codecs.lookup(name.strip().strip("\"'"))
    except (LookupError, ValueError):
        return None
    if codec.name in _NOT_TEXT or codec.name.startswith(("utf-7", "unicode", "raw-unicode", "mbcs", "oem")):
        return None
    return _READ_AS.get(codec.name, codec.name)


ELEMENTS_MAX: Final = 8_000  # Extraction takes a second for so many.
DEPTH_MAX: Final = 200
ATTRIBUTES_MAX: Final = 50
VALUE_CHARACTERS_MAX: Final = 2_048
TEXT_CHARACTERS_MAX: Final = 100_000
# Characters that no tree can have; pages have them all the same, as a form feed or a rest of a word processor.
_NOT_STORED: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Names that a tree can have; pages have others by mistake, such as `<b<i>`, or what a template has left: `<p {{hidden}}>`.
_NAME: Final = re.compile(r"""[^{&<>/"'\s][^&<>/"'\s]*""")
_ANY_TAG: Final = "span"
# Nothing below these is text for readers.
_DROPPED: Final = frozenset(
    ["script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "select", "textarea"]
)
# lxml has no types.
_etree = cast("Any", _untyped_etree)
_make_element: Final = cast("Any", _untyped_html).HTMLParser(encoding="utf-8").makeelement
HtmlError: Final[type[Exception]] = _etree.LxmlError
HTML_BYTES_MAX: Final = 2 * 2**20
LINKS_MAX: Final = 1_000
ADDRESS_CHARACTERS_MAX: Final = 2_048
TEXT_CHARACTERS_KEPT: Final = 64 * 2**10
# The caches of trafilatura keep pieces of every page; they are emptied after so much HTML, which takes milliseconds.
CACHED_BYTES_MAX: Final = 4 * 2**20
_config: Final = use_config()


class HtmlElement(Protocol):
    """An element of a page, as far as we read it."""

    def get(self, name: str) -> str | None: ...

    def iter(self, tag: str) -> "Iterator[HtmlElement]": ...

    def find(self, tag: str) -> "HtmlElement | None": ...

    def itertext(self) -> Iterator[str]: ...

    def text_content(self) -> str: ...


class BoundedBuilder:
    """Takes the parser's events and builds the tree within bounds, whatever the page sends.

    The parser's own builder appends an element's attributes one after the other, each by a walk to the last: 100,000
    of them would take minutes. What is beyond the bounds is left out: the first part of a page says what it is about.
    """

    def __init__(self) -> None:
        self._builder = _etree.TreeBuilder(element_factory=_make_element)
        self._is_built: list[bool] = []
        self._elements = 0
        self._depth = 0
        self._characters = 0
        self._dropped_depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        is_dropped = bool(self._dropped_depth) or tag in _DROPPED
        if is_dropped:
            self._dropped_depth += 1
        is_built = not is_dropped and self._elements < ELEMENTS_MAX and self._depth < DEPTH_MAX
        self._is_built.append(is_built)
        if is_built:
            self._elements += 1
            self._depth += 1
            self._builder.start(_name_tag(tag), _limit(attributes))

    def end(self, tag: str) -> None:
        if not self._is_built:
            return
        if self._is_built.pop():
            self._depth -= 1
            self._builder.end(_name_tag(tag))
        elif self._dropped_depth:
            self._dropped_depth -= 1

    def data(self, text: str) -> None:
        # Text outside of the root has no place in a tree.
        if self._dropped_depth or not self._depth or self._characters > TEXT_CHARACTERS_MAX:
            return
        self._characters += len(text)
        self._builder.data(_NOT_STORED.sub(" ", text[:TEXT_CHARACTERS_MAX]))

    def close(self) -> HtmlElement | None:
        if not self._elements:
            return None
        return cast("HtmlElement", self._builder.close())


def parse_tree(text: str) -> HtmlElement | None:
    """Parse a page; None where it has no element at all."""
    parser = _etree.HTMLParser(encoding="utf-8", target=BoundedBuilder())
    body = _NOT_STORED.sub(" ", text.replace("\0", "")).encode("utf-8")
    return cast("HtmlElement | None", _etree.fromstring(body, parser=parser))


def _name_tag(tag: str) -> str:
    return tag if _NAME.fullmatch(tag) else _ANY_TAG


def _limit(attributes: Mapping[str, str]) -> dict[str, str]:
    pairs = list(attributes.items())[:ATTRIBUTES_MAX]
    return {
        name: _NOT_STORED.sub(" ", value[:VALUE_CHARACTERS_MAX])
        for name, value in pairs
        if _NAME.fullmatch(name)
    }


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
    main_text = _remove_title(_read_main_text(tree), title)
    description = (head.get("description") or head.get("og:description") or "")[:DESCRIPTION_CHARACTERS_MAX]
    robots = _read_robots(f"{head.get('robots', '')},{head.get('adloombot', '')}")
    return ExtractedPage(
        title=title,
        description=description,
        text=main_text,
        language=_choose_language(tree, head, f"{title} {description} {main_text}"),
        content_hash=hash_content(title, description, main_text),
        canonical=_read_canonical(tree, address),
        links=links,
        is_noindex=not robots.isdisjoint(("noindex", "none")),
        is_nofollow=not robots.isdisjoint(("nofollow", "none")),
    )


def _remove_title(text: str, title: str) -> str:
    """Leave out a title that the text begins with, unless it is the beginning of a longer word."""
    rest = text.removeprefix(title)
    return text if rest[:1].isalnum() else rest.lstrip()


def _read_robots(content: str) -> frozenset[str]:
    """Return the rules without values: `max-image-preview:none` is none of ours."""
    return frozenset(word for part in content.lower().split(",") if ":" not in part for word in part.split())


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
