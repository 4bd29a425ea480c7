"""The sitemaps of a site: lists of its pages, and lists of such lists, followed within bounds."""

from collections import deque
from typing import Final
from urllib.parse import urljoin
from xml.parsers import expat

import msgspec
import structlog

from adloom.pages.crawl.fetch import CrawlPace
from adloom.pages.crawl.frontier import FoundUrl, find_pages
from adloom.pages.crawl.model import CrawlPlan
from adloom.pages.crawl.robots import RobotsCache
from adloom.pages.url import normalize_url
from adloom.runtime.outbound.client import BodyLimit, OutboundClient
from adloom.runtime.outbound.decompress import BoundedBody
from adloom.runtime.outbound.failure import OutboundError

BYTES_MAX: Final = 2 * 2**20  # After decompression; of a longer one the beginning is read.
URLS_MAX: Final = 20_000
URL_CHARACTERS_MAX: Final = 2_048
GZIP_MAGIC: Final = b"\x1f\x8b"
FEED_BYTES: Final = 64 * 1024


class Sitemap(msgspec.Struct, frozen=True, kw_only=True):
    """What a sitemap names; `reason` says why the rest of it could not be read."""

    urls: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    reason: str | None = None


def read_sitemap(body: bytes) -> Sitemap:
    """Read an XML sitemap, an index of sitemaps, or a text with a URL a line, each with or without gzip."""
    if body.startswith(GZIP_MAGIC):
        unzipped = BoundedBody("gzip", bytes_max=BYTES_MAX)
        try:
            unzipped.feed(body)
        except OutboundError as error:
            return Sitemap(reason=str(error))
        body = unzipped.body
    body = body[:BYTES_MAX]
    start = body[:1024].lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")
    if start.startswith(b"<"):
        return _read_xml(body)
    lines = (line.strip() for line in body.decode("utf-8", "replace").splitlines())
    urls = [
        line for line in lines if line.startswith(("http://", "https://")) and len(line) <= URL_CHARACTERS_MAX
    ]
    return Sitemap(urls=tuple(urls[:URLS_MAX]), reason=None if urls else "It is no sitemap.")


class _SitemapReader:
    """Takes the elements of a sitemap as they come, without building a tree."""

    def __init__(self) -> None:
        # A `loc` in these elements is a page, and in those a sitemap.
        self.found: dict[str, list[str]] = {"url": [], "sitemap": []}
        self._inside = ""
        self._parts: list[str] | None = None
        self._characters = 0
        self._parser = expat.ParserCreate(namespace_separator="}")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add
        self._parser.StartDoctypeDeclHandler = self._refuse

    def read(self, body: bytes) -> None:
        for offset in range(0, len(body), FEED_BYTES):
            self._parser.Parse(body[offset : offset + FEED_BYTES])
        self._parser.Parse(b"", True)  # noqa: FBT003 - the library's order

    def _start(self, tag: str, _attributes: object) -> None:
        name = tag.rpartition("}")[2]
        if name in self.found:
            self._inside = name
        self._parts = [] if name == "loc" else None
        self._characters = 0

    def _add(self, text: str) -> None:
        if self._parts is not None and self._characters <= URL_CHARACTERS_MAX:
            self._parts.append(text)
            self._characters += len(text)

    def _end(self, tag: str) -> None:
        if self._parts is not None and self._inside:
            url = "".join(self._parts).strip()
            if 0 < len(url) <= URL_CHARACTERS_MAX and len(self.found[self._inside]) < URLS_MAX:
                self.found[self._inside].append(url)
        self._parts = None
        if tag.rpartition("}")[2] in self.found:
            self._inside = ""

    def _refuse(self, *_: object) -> None:
        raise _DoctypeError


class _DoctypeError(Exception):
    """A document type: no sitemap needs one, and attacks by entities do."""


def _read_xml(body: bytes) -> Sitemap:
    """Read elements as they come: what is before a mistake counts."""
    reader, reason = _SitemapReader(), None
    try:
        reader.read(body)
    except _DoctypeError:
        return Sitemap(reason="It has a document type, which no sitemap needs.")
    except (expat.ExpatError, ValueError, LookupError):  # The last: an encoding that does not exist.
        reason = "It is no whole XML document."
    return Sitemap(urls=tuple(reader.found["url"]), sitemaps=tuple(reader.found["sitemap"]), reason=reason)


FILES_MAX: Final = 20
LEVELS_MAX: Final = 2  # An index, and what it names.
LIMIT: Final = BodyLimit(bytes_max=BYTES_MAX, is_cut_taken=True)
SUCCESS: Final = 200

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def find_in_sitemaps(
    plan: CrawlPlan, client: OutboundClient, robots: RobotsCache, pace: CrawlPace
) -> list[FoundUrl]:
    """Return the pages that the site's sitemaps name; a sitemap that cannot be read is passed over."""
    hosts, rules = plan.hosts, await robots.read(plan.seed)
    if isinstance(rules, str):
        return []
    named = rules.sitemaps or (urljoin(plan.seed, "/sitemap.xml"),)
    waiting = deque((url, 1) for url in named)
    asked: set[str] = set()
    found: dict[str, FoundUrl] = {}
    while waiting and len(asked) < FILES_MAX and len(found) < plan.max_pages:
        url, level = waiting.popleft()
        normalized = normalize_url(url)
        if normalized is None or normalized.text in asked or not hosts.has(normalized.host):
            continue
        asked.add(normalized.text)
        body = await _fetch(url, client, pace)
        if body is None:
            continue
        sitemap = read_sitemap(body)
        if sitemap.reason is not None:
            log.info("sitemap_not_read", site=plan.domain, reason=sitemap.reason)
        for page in find_pages(sitemap.urls, hosts):
            found.setdefault(page.url, page)
        if level < LEVELS_MAX:
            waiting.extend((other, level + 1) for other in sitemap.sitemaps[:FILES_MAX])
    return list(found.values())[: plan.max_pages]


async def _fetch(url: str, client: OutboundClient, pace: CrawlPace) -> bytes | None:
    await pace.wait()
    try:
        response = await client.get(url, limit=LIMIT)
    except OutboundError:
        return None
    return response.body if response.status == SUCCESS else None
