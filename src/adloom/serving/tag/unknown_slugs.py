"""Slugs that tags on pages of known sites ask for, and that no placement has: mostly typing errors."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from adloom.pages.url import normalize_url
from adloom.serving.index.index import Index

SLUGS_MAX: Final = 20  # Anybody can send a request that names a page: the list stays short.
REMEMBERED: Final = timedelta(hours=1)
# What somebody may have typed for a slug. Admins read it: it has no room for sentences and addresses.
MISTYPED: Final = re.compile(rb"[A-Za-z0-9_-]+")


class UnknownSlugs:
    """Remembers the last ones of an hour, each with the host of a page that asked."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[str, datetime]] = OrderedDict()

    def note(
        self, index: Index, slugs: Iterable[bytes], addresses: Iterable[str | None], now: datetime
    ) -> None:
        """Remember slugs that a page asks for, if it is one of a site that we know."""
        urls = (normalize_url(address) for address in addresses if address)
        host = next((url.host for url in urls if url and index.sites.find_by_host(url.host)), None)
        if host is None:
            return
        for slug in slugs:
            if not MISTYPED.fullmatch(slug):
                continue
            name = slug.decode("ascii")
            self._seen.pop(name, None)  # The newest are last.
            self._seen[name] = (host, now)
        while len(self._seen) > SLUGS_MAX:
            self._seen.popitem(last=False)

    def read(self, index: Index, now: datetime) -> Mapping[str, str]:
        """Return the slugs of the last hour that are still unknown, each with its host."""
        self._seen = OrderedDict(
            (slug, (host, at))
            for slug, (host, at) in self._seen.items()
            if now - at < REMEMBERED and slug.encode() not in index.by_slug
        )
        return {slug: host for slug, (host, _) in self._seen.items()}
