"""The robots.txt of each host of a crawl, fetched once."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

from adloom.pages.crawl.pace import CrawlPace
from adloom.pages.crawl.robots import BYTES_MAX, RobotsRules, is_not_now, read_rules
from adloom.runtime.outbound.client import BodyLimit, OutboundClient
from adloom.runtime.outbound.failure import OutboundError

HOSTS_MAX: Final = 200  # A site with more has made them up.
LIMIT: Final = BodyLimit(bytes_max=BYTES_MAX, is_cut_taken=True)


class RobotsCache:
    """Reads robots.txt by host; a host that does not answer may not be asked now."""

    def __init__(self, client: OutboundClient, pace: CrawlPace, *, robot: str) -> None:
        self._client = client
        self._pace = pace
        self._robot = robot
        self._rules: dict[str, RobotsRules | str] = {}
        self._reading = asyncio.Lock()

    async def read(self, address: str) -> RobotsRules | str:
        """Return the rules for the host of an address, or why it may not be asked now."""
        parts = urlsplit(address)
        host = f"{parts.scheme}://{parts.netloc}"
        async with self._reading:
            if host not in self._rules:
                if len(self._rules) >= HOSTS_MAX:
                    return "The site has too many hosts."
                rules = await self._fetch(f"{host}/robots.txt")
                self._rules[host] = rules
                if isinstance(rules, RobotsRules):
                    self._pace.delay_seconds = max(self._pace.delay_seconds, rules.crawl_delay_seconds)
            return self._rules[host]

    async def _fetch(self, url: str) -> RobotsRules | str:
        await self._pace.wait()
        try:
            response = await self._client.get(url, limit=LIMIT)
        except OutboundError as error:
            return f"robots.txt could not be read, so nothing may be fetched now. {error}"
        if is_not_now(response.status):
            return f"robots.txt was answered with {response.status}, so nothing may be fetched now."
        return read_rules(response.status, response.body, robot=self._robot)
