"""What the query of a slot asks: parsed once, since the readers of a page all ask the same."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec

from adloom.core.errors import make_field_error
from adloom.pages.url import NormalizedUrl
from adloom.serving.contextual.page_host import SiteHostMismatchError, parse_page_url
from adloom.serving.contextual.page_lookup import PreparedPage
from adloom.serving.index.site import IndexedSite
from adloom.serving.request.context import USER_ID
from adloom.serving.request.overrides import parse_overrides

QUERIES_MAX: Final = 8_192  # Remembered, of at most so many bytes.
QUERY_BYTES_MAX: Final = 1_024
WRONG_HOST: Final = "The host of `url` is not one of the site's."


class QueriedSlot(msgspec.Struct, gc=False):
    """A slot of a page; `site` is the last one that the page was found to be of, `known` what fills the slot."""

    slug: bytes
    url: NormalizedUrl
    user_id: UUID | None
    site: IndexedSite | None = None
    known: PreparedPage | None = None

    def check_host(self, site: IndexedSite) -> None:
        if self.site is site:
            return
        if not site.has_host(self.url.host):
            raise SiteHostMismatchError(WRONG_HOST)
        self.site = site


class SlotQueries:
    """Parses queries, and remembers those without a user: a user id is a person's."""

    def __init__(self) -> None:
        self._known: dict[bytes, QueriedSlot] = {}
        self.find = self._known.get

    def parse(self, query: bytes) -> QueriedSlot:
        """Parse a query that was not found."""
        asked = _parse_query(query)
        url = parse_page_url(_require(asked, "url"))
        slot = QueriedSlot(_require(asked, "slot").encode(), url, parse_overrides(asked).user_id)
        if USER_ID not in query and len(query) <= QUERY_BYTES_MAX:
            if len(self._known) >= QUERIES_MAX:
                self._known.clear()
            self._known[query] = slot
        return slot


def _parse_query(query: bytes) -> dict[str, str]:
    """Parse a query; of a repeated parameter the first counts."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    return dict(reversed(pairs))


def _require(asked: Mapping[str, str], name: str) -> str:
    value = asked.get(name)
    if not value:
        raise make_field_error(name, "is required")
    return value
