"""Fetches one address of a site, not too often, and decides what it is: a page, an unchanged page, or none."""

import asyncio
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from adloom.pages.crawl.frontier import FoundUrl, read_address
from adloom.pages.crawl.model import WaitingUrl
from adloom.runtime.outbound.client import BodyLimit, OutboundClient, OutboundResponse
from adloom.runtime.outbound.failure import FailureKind, OutboundError
from adloom.targeting.site_hosts import SiteHosts

HTML: Final = ("text/html", "application/xhtml+xml")
ACCEPT: Final = "text/html,application/xhtml+xml;q=0.9"
NOT_MODIFIED: Final = 304
SUCCESS: Final = 200
BUSY: Final = frozenset({429, 503})
HEADER_CHARACTERS_MAX: Final = 500
DATE_CHARACTERS_MAX: Final = 100
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


class FetchedPage(msgspec.Struct, frozen=True, kw_only=True):
    """An HTML page, with what its headers say."""

    address: str
    body: bytes
    charset: str | None
    etag: str | None
    last_modified: str | None
    is_noindex: bool
    is_nofollow: bool


class NotModified(msgspec.Struct, frozen=True):
    """The page is as it was; its validators may be new."""

    etag: str | None
    last_modified: str | None


class RedirectedPage(msgspec.Struct, frozen=True):
    """The page is another one: of the site, or None."""

    target: FoundUrl | None
    reason: str


class MovedPage(msgspec.Struct, frozen=True):
    """The page is found at another address, by https or with a slash at its end."""

    address: str


class NotAPage(msgspec.Struct, frozen=True):
    """Something else than HTML."""

    reason: str


class FailedFetch(msgspec.Struct, frozen=True):
    """No answer that we can use."""

    reason: str


class BusyServer(msgspec.Struct, frozen=True):
    """The server asks us to come again later."""

    seconds: float
    reason: str


FetchResult = FetchedPage | NotModified | RedirectedPage | MovedPage | NotAPage | FailedFetch | BusyServer


async def fetch_page(
    client: OutboundClient, waiting: WaitingUrl, hosts: SiteHosts, *, robot: str
) -> FetchResult:
    """Fetch an address, unless it leads elsewhere: another page is taken up by itself, and another address in its turn."""
    redirects: list[FoundUrl | None] = []

    def may_follow(url: str) -> str | None:
        target = read_address(url, hosts)
        redirects.append(target)
        if target is not None and target.url == waiting.url:
            return "which is the same page"
        return "which is another page" if target is not None else "which is not of the site, or no page"

    try:
        response = await client.get(
            waiting.address,
            headers=_ask_if_changed(waiting),
            limit=BodyLimit(is_wanted=_is_html),
            may_follow=may_follow,
        )
    except OutboundError as error:
        if error.kind is FailureKind.REDIRECT_REFUSED and redirects:
            target = redirects[-1]
            is_same = target is not None and target.url == waiting.url
            return MovedPage(target.address) if is_same and target else RedirectedPage(target, str(error))
        return FailedFetch(str(error))
    return _judge(response, waiting, robot)


def _judge(response: OutboundResponse, waiting: WaitingUrl, robot: str) -> FetchResult:
    headers, status = response.headers, response.status
    etag = (headers.get("etag") or "")[:HEADER_CHARACTERS_MAX] or None
    last_modified = (headers.get("last-modified") or "")[:DATE_CHARACTERS_MAX] or None
    if status == NOT_MODIFIED and (waiting.etag or waiting.last_modified):
        return NotModified(etag or waiting.etag, last_modified or waiting.last_modified)
    if status in BUSY:
        return BusyServer(read_retry_after(headers.get("retry-after")), f"The server answers {status}.")
    if status != SUCCESS:
        return FailedFetch(f"The server answers {status}.")
    if not _is_html(headers):
        kind = headers.get("content-type", "").partition(";")[0].strip()[:50]
        return NotAPage(f"It is no HTML but {kind}." if kind else "The server does not say that it is HTML.")
    rules = read_robots_header(headers.get("x-robots-tag", ""), robot)
    charset = _CHARSET.search(headers.get("content-type", ""))
    return FetchedPage(
        address=response.url,
        body=response.body,
        charset=charset[1] if charset else None,
        etag=etag,
        last_modified=last_modified,
        is_noindex=bool(rules & {"noindex", "none"}),
        is_nofollow=bool(rules & {"nofollow", "none"}),
    )


def read_robots_header(value: str, robot: str) -> frozenset[str]:
    """Return the rules of `X-Robots-Tag` that are for all robots, or for ours by name."""
    rules: set[str] = set()
    is_ours = True
    for part in value.lower().split(","):
        name, colon, rule = part.partition(":")
        if colon and name.strip() not in {
            "unavailable_after",
            "max-snippet",
            "max-image-preview",
            "max-video-preview",
        }:
            is_ours = name.strip() == robot.lower()
            part = rule  # noqa: PLW2901 - the rule without the robot's name
        if is_ours:
            rules.add(part.strip())
    return frozenset(rules)


def _is_html(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() in HTML


def _ask_if_changed(waiting: WaitingUrl) -> dict[str, str]:
    headers = {"Accept": ACCEPT}
    if waiting.etag:
        headers["If-None-Match"] = waiting.etag
    if waiting.last_modified:
        headers["If-Modified-Since"] = waiting.last_modified
    return headers


PAUSE_SECONDS_MAX: Final = 60.0
PAUSE_SECONDS_DEFAULT: Final = 10.0


class CrawlPace:
    """Spaces the beginnings of requests; `delay_seconds` may grow when robots.txt asks for it."""

    def __init__(self, delay_seconds: float) -> None:
        self.delay_seconds = delay_seconds
        self._last_at = float("-inf")
        self._held_until = 0.0

    async def wait(self) -> None:
        """Wait for this request's turn."""
        now = asyncio.get_running_loop().time()
        self._last_at = max(self._last_at + self.delay_seconds, self._held_until, now)
        if self._last_at > now:
            await asyncio.sleep(self._last_at - now)

    def hold(self, seconds: float) -> None:
        """Let no request begin for a while: the server said so."""
        until = asyncio.get_running_loop().time() + min(seconds, PAUSE_SECONDS_MAX)
        self._held_until = max(self._held_until, until)


def read_retry_after(value: str | None) -> float:
    """Return the seconds of a `Retry-After`; a date, or anything else, is our own pause."""
    return (
        min(float(value), PAUSE_SECONDS_MAX) if value and value.strip().isdigit() else PAUSE_SECONDS_DEFAULT
    )
