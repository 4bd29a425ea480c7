"""Whether a report comes from a page of the placement's site, by its headers and by what it says itself.

Browsers write `Referer` and `Origin`, and no page can make them write another's. What a report says of its page is
worth less, and is looked at too: a frame of ours has our own address in its headers.
"""

# pure

from enum import Enum, auto
from functools import lru_cache
from typing import Final, NamedTuple

from adloom.targeting.values import extract_host

ORIGINS_CACHED_MAX: Final = 16_384
CACHED_BYTES_MAX: Final = 256
_PARTS_OF_ORIGIN: Final = 3  # Scheme, nothing, and host.
_WEB: Final = ("https://", "http://")


class PageOrigin(Enum):
    """Where the page of a request is."""

    OF_SITE = auto()  # Or one of ours, or on the visitor's own machine.
    OTHER = auto()
    UNKNOWN = auto()


_OF_SITE: Final = PageOrigin.OF_SITE  # Looking up a member of an enum calls Python.


class SiteOrigins(NamedTuple):
    """How addresses of a site's pages usually begin: what a browser writes for its domain, with `www.` or without."""

    of_pages: tuple[str, ...]
    of_referers: tuple[bytes, ...]
    of_headers: frozenset[bytes]


def list_origins(site: str) -> SiteOrigins:
    domain = site.removeprefix("www.")
    origins = [f"{scheme}{host}" for scheme in _WEB for host in (domain, f"www.{domain}")]
    return SiteOrigins(
        tuple(f"{origin}/" for origin in origins),
        tuple(f"{origin}/".encode() for origin in origins),
        frozenset(origin.encode() for origin in origins),
    )


class PageCheck:
    """Compares pages with the sites of placements. A page of our own host is of every site."""

    def __init__(self, own_url: str) -> None:
        self._own_host = extract_host(own_url)
        self._origins: dict[str, SiteOrigins] = {}
        self._judge_headers_cached = lru_cache(ORIGINS_CACHED_MAX)(self._judge_headers)
        self._judge_page_cached = lru_cache(ORIGINS_CACHED_MAX)(self._judge_page)

    def judge(self, site: str, values: dict[bytes, bytes], page_url: str | None = None) -> PageOrigin:
        """Judge a request by its first header values, and by the page that a report names."""
        known = self._origins.get(site) or self._add_origins(site)
        referer, origin = values.get(b"referer"), values.get(b"origin")
        if (
            (referer is None or referer.startswith(known.of_referers))
            and (origin is None or origin in known.of_headers)
            and (page_url is None or page_url.startswith(known.of_pages))
            and not (referer is origin is page_url is None)
        ):
            return _OF_SITE  # As nearly all are.
        return self._judge_unusual(site, referer or b"", origin or b"", page_url)

    def _add_origins(self, site: str) -> "SiteOrigins":
        if len(self._origins) >= ORIGINS_CACHED_MAX:
            self._origins.clear()
        self._origins[site] = known = list_origins(site)
        return known

    def _judge_unusual(self, site: str, referer: bytes, origin: bytes, page_url: str | None) -> PageOrigin:
        is_usual = len(referer) + len(origin) <= CACHED_BYTES_MAX
        found = (self._judge_headers_cached if is_usual else self._judge_headers)(site, referer, origin)
        if page_url is None or found is PageOrigin.OTHER:
            return found
        named = "/".join(page_url.split("/", _PARTS_OF_ORIGIN)[:_PARTS_OF_ORIGIN])
        is_usual = len(named) <= CACHED_BYTES_MAX
        judged = (self._judge_page_cached if is_usual else self._judge_page)(site, named)
        return found if judged is PageOrigin.UNKNOWN else judged

    def _judge_headers(self, site: str, referer: bytes, origin: bytes) -> PageOrigin:
        judged = {self._judge_page(site, one.decode("latin-1")) for one in (referer, origin)}
        for worst_first in (PageOrigin.OTHER, PageOrigin.OF_SITE):
            if worst_first in judged:
                return worst_first
        return PageOrigin.UNKNOWN

    def _judge_page(self, site: str, address: str) -> PageOrigin:
        parts = address.strip().lower().split("/", _PARTS_OF_ORIGIN)
        origin = "/".join(parts[:_PARTS_OF_ORIGIN])
        if not origin.startswith(_WEB):
            return PageOrigin.UNKNOWN  # An app, a file, or a frame without an origin.
        if _is_loopback(origin):
            return PageOrigin.OF_SITE
        host = extract_host(origin)
        if host is not None and (host == self._own_host or _is_within(host, site.removeprefix("www."))):
            return PageOrigin.OF_SITE
        return PageOrigin.OTHER


def _is_within(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def _is_loopback(origin: str) -> bool:
    """Return whether a page is on the machine of its visitor: one that is tried out, or a sample."""
    place = origin.partition("://")[2].rpartition("@")[2]
    host = place if place.startswith("[") else place.partition(":")[0]
    host = host.partition("]")[0] + "]" if host.startswith("[") else host
    return host in {"localhost", "[::1]"} or host.endswith(".localhost") or _is_127(host)


def _is_127(host: str) -> bool:
    parts = host.split(".")
    return parts[0] == "127" and len(parts) == 4 and all(part.isdecimal() for part in parts)  # noqa: PLR2004 - of IPv4
