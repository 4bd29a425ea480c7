"""What is asked, how often, and what came of it: the words that both load generators share."""

import re
from typing import Final

import msgspec

# What a browser sends; every target gets the same, since parsing headers is part of the price.
BROWSER_HEADERS: Final = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0 Safari/537.36",
    "Accept": "*/*",
    "Accept-Language": "en-GB,en;q=0.9,de;q=0.8",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Referer": "https://news.example/politics/2026/11/an-article-of-the-day",
    "Origin": "https://news.example",
    "Sec-Fetch-Dest": "empty",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Site": "cross-site",
}
SERIAL: Final = "@serial@"  # Stands in a body for what must differ from one request to the next.
USER: Final = "@user@"  # Stands there for a user, another one each time.
USERS: Final = 10_000
KIND: Final = '"@kind@"'  # Stands there, quotes included, for what a target's kinds of readers say, as JSON.
USER_BEGINS: Final = "0192e4a0-0000-7000-8000-"  # The rest of a user's id is a number of twelve digits.

_STANDS_FOR: Final = re.compile(f"({SERIAL}|{USER}|{KIND})")


def parts_of(body: str) -> list[str]:
    """Part a body into what is always the same and, every other, what stands for something."""
    return _STANDS_FOR.split(body)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of request to one server."""

    name: str
    port: int
    path: str
    body: str | None = None
    kinds: tuple[str, ...] = ("null",)

    @property
    def method(self) -> str:
        """A request with a body is a POST."""
        return "GET" if self.body is None else "POST"


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How hard and how long to ask."""

    connections: int
    seconds: float
    serial_prefix: str


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What a load generator saw."""

    requests: int
    errors: int
    seconds: float
    p50_micros: float
    p99_micros: float


class LoadError(Exception):
    """The load generator did not do its work, or the server did not answer it well."""
