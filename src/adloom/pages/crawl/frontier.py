"""Which addresses a crawl takes up: those of the site's hosts that may be pages, each once."""

# pure

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from adloom.pages.url import normalize_url
from adloom.targeting.site_hosts import SiteHosts

ADDRESS_CHARACTERS_MAX: Final = 2_048
# Addresses that may still be fetched or skipped, for each page that a crawl may read.
ADDRESSES_PER_PAGE: Final = 4
ADDRESSES_MIN: Final = 100
# What is no page is not asked for; a server's Content-Type has the last word for the rest.
NOT_PAGES: Final = frozenset(
    """
    7z apk avi avif bin bmp bz2 css csv dmg doc docx eot epub exe flac gif gz heic ico ics iso jpeg jpg js json
    m4a m4v map mjs mkv mov mp3 mp4 mpeg mpg msi odp ods odt ogg ogv otf pdf png ppt pptx ps rar rss rtf svg tar
    tgz tif tiff ttf txt wasm wav webm webmanifest webp woff woff2 wmv xls xlsx xml xz zip
    """.split()  # noqa: SIM905 - a table
)


# A user before the host: pages for readers are not linked so, and each would be a host of its own.
_HAS_USER: Final = re.compile(r"[^/?#]*//[^/?#]*@")


class FoundUrl(msgspec.Struct, frozen=True):
    """A page that may be fetched: its normalised URL, and the address as it was found."""

    url: str
    address: str


def find_pages(addresses: Iterable[str], hosts: SiteHosts) -> list[FoundUrl]:
    """Return the addresses that are of the site and may be pages, each page once, in order."""
    found: dict[str, FoundUrl] = {}
    for address in addresses:
        page = read_address(address, hosts)
        if page is not None:
            found.setdefault(page.url, page)
    return list(found.values())


def read_address(address: str, hosts: SiteHosts) -> FoundUrl | None:
    """Return the page at an address, or None if it is of another site, or no page."""
    if len(address) > ADDRESS_CHARACTERS_MAX or _HAS_USER.match(address):
        return None
    normalized = normalize_url(address)
    if normalized is None or not hosts.has(normalized.host):
        return None
    if normalized.text.removeprefix(normalized.host).startswith(":"):  # Another port is another server.
        return None
    path = normalized.text.partition("?")[0].partition("/")[2]
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    if dot and extension.lower() in NOT_PAGES:
        return None
    return FoundUrl(normalized.text, address.partition("#")[0])


def limit_addresses(pages_max: int) -> int:
    """Return how many addresses a crawl may take up in all."""
    return ADDRESSES_MIN + ADDRESSES_PER_PAGE * pages_max
