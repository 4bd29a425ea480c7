"""What the body of a page's slots asks: parsed once, since the readers of a page all ask the same."""

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from adloom.pages.url import NormalizedUrl
from adloom.runtime.http.body import BodyDecoder
from adloom.serving.contextual.page_host import parse_page_url
from adloom.serving.contextual.question import QUERIES_MAX, QUERY_BYTES_MAX
from adloom.serving.request.overrides import Overrides, parse_overrides

SLOTS_MAX: Final = 20
NO_OVERRIDES: Final = Overrides({})


class SlotsRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The contextual slots of a page."""

    url: str
    slots: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=100)]],
        msgspec.Meta(min_length=1, max_length=SLOTS_MAX),
    ]
    user_id: UUID | None = None
    context: dict[str, Any] = {}


class QueriedSlots(msgspec.Struct, frozen=True, gc=False):
    """The slots of a page, each once, and what is before each one's ad in an answer."""

    slugs: tuple[bytes, ...]
    names: tuple[bytes, ...]  # As JSON, with a colon, and a comma before all but the first.
    url: NormalizedUrl
    overrides: Overrides
    user_id: UUID | None


_bodies: Final = BodyDecoder(SlotsRequest)


class BatchQueries:
    """Parses bodies, and remembers those that say nothing of their reader."""

    def __init__(self) -> None:
        self._known: dict[bytes, QueriedSlots] = {}

    def parse(self, body: bytes) -> QueriedSlots:
        known = self._known.get(body)
        return self._parse(body) if known is None else known

    def _parse(self, body: bytes) -> QueriedSlots:
        asked = _bodies.decode(body)
        overrides = parse_overrides(asked.context, within="context.") if asked.context else NO_OVERRIDES
        url = parse_page_url(asked.url)
        slugs = tuple(dict.fromkeys(slug.encode() for slug in asked.slots))
        names = tuple(
            b"%b%b:" % (b"," if number else b"", msgspec.json.encode(slug.decode()))
            for number, slug in enumerate(slugs)
        )
        queried = QueriedSlots(slugs, names, url, overrides, asked.user_id or overrides.user_id)
        if asked.user_id is None and not asked.context and len(body) <= QUERY_BYTES_MAX:
            if len(self._known) >= QUERIES_MAX:
                self._known.clear()
            self._known[body] = queried
        return queried
