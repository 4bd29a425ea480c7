"""The sitemaps of a site, followed within bounds."""

from collections import deque
from typing import Final
from urllib.parse import urljoin

import structlog

from adloom.pages.crawl.frontier import FoundUrl, find_pages
from adloom.pages.crawl.model import CrawlPlan
from adloom.pages.crawl.pace import CrawlPace
from adloom.pages.crawl.robots import RobotsCache
from adloom.pages.crawl.sitemap import BYTES_MAX, read_sitemap
from adloom.pages.url import normalize_url
from adloom.runtime.outbound.client import BodyLimit, OutboundClient
from adloom.runtime.outbound.failure import OutboundError

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
