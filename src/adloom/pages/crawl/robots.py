"""The robots.txt of each host of a crawl, fetched once, and what it allows us (RFC 9309)."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

import msgspec
from protego import Protego

from adloom.pages.crawl.fetch import CrawlPace
from adloom.runtime.outbound.client import BodyLimit, OutboundClient
from adloom.runtime.outbound.failure import OutboundError

BYTES_MAX: Final = 500 * 1024  # As much as the RFC asks for; what follows is not read.
LINE_CHARACTERS_MAX: Final = 4_096  # A longer path matches no URL that we fetch.
RULES_MAX: Final = 10_000
SITEMAPS_MAX: Final = 20
CRAWL_DELAY_SECONDS_MAX: Final = 30.0
OTHER_ROBOTS: Final = "x-other-robots"
GONE: Final = range(400, 500)
TOO_MANY_REQUESTS: Final = 429
HOSTS_MAX: Final = 200  # A site with more has made them up.
LIMIT: Final = BodyLimit(bytes_max=BYTES_MAX, is_cut_taken=True)


class RobotsRules(msgspec.Struct, frozen=True):
    """The rules of one host for our robot; without a file all is allowed."""

    robot: str
    rules: Protego | None = None

    @property
    def crawl_delay_seconds(self) -> float:
        """How long the host wants us to wait between requests; 0 if it does not say."""
        delay = self.rules.crawl_delay(self.robot) if self.rules is not None else None
        return min(delay or 0.0, CRAWL_DELAY_SECONDS_MAX)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        return () if self.rules is None else tuple(self.rules.sitemaps)[:SITEMAPS_MAX]

    def allows(self, url: str) -> bool:
        return self.rules is None or self.rules.can_fetch(url, self.robot)


def name_robot(user_agent: str) -> str:
    """Return the product token that rules name: `AdloomBot` of `AdloomBot/1.0 (+https://…)`."""
    return user_agent.partition("/")[0].strip()


def is_not_now(status: int) -> bool:
    """Whether this answer to robots.txt means that nothing may be fetched yet; other failures allow all."""
    return status == TOO_MANY_REQUESTS or (status not in GONE and not 200 <= status < 300)  # noqa: PLR2004 - success


def read_rules(status: int, body: bytes, *, robot: str) -> RobotsRules:
    """Read the rules from an answer; 4xx allows everything, and so does a file that has none."""
    assert not is_not_now(status)
    if status in GONE:
        return RobotsRules(robot)
    text = body[:BYTES_MAX].decode("utf-8-sig", "replace").replace("\0", "")
    return RobotsRules(robot, Protego.parse("\n".join(_simplify(text, robot.lower()))))


def _simplify(text: str, robot: str) -> list[str]:
    """Keep what concerns us. The parser keeps each rule once for each robot of its group: a file could ask for gigabytes."""
    kept: list[str] = []
    for line in text.splitlines():
        plain = line.partition("#")[0].strip()
        if not plain or len(plain) > LINE_CHARACTERS_MAX:
            continue
        name, _, value = plain.partition(":")
        if name.strip().lower().replace("-", "").replace(" ", "") == "useragent":
            agent = value.strip().lower()
            is_ours = agent == "*" or (bool(agent) and robot.startswith(agent.partition("/")[0].rstrip("*")))
            plain = f"User-agent: {agent if is_ours else OTHER_ROBOTS}"
            if kept and kept[-1] == plain:
                continue
        kept.append(plain)
        if len(kept) >= RULES_MAX:
            break
    return kept


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
