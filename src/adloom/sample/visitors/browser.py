"""What a simulated visitor's browser sends: the requests of the tag, over one connection to delivery."""

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from adloom.sample.visitors.visitors import SampleVisitor
from adloom.sample.visitors.visits import Event, SeenOffer, VisitedPage

ANSWER_SECONDS_MAX: Final = 5.0
BUSY: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class BusyError(Exception):
    """Delivery is away or overloaded: back off."""


class Asked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer for one placement; empty where it is a problem."""

    banners: list[SeenOffer] = []
    placement: "ServedPlacement | None" = None
    request_id: str = ""


class ServedPlacement(msgspec.Struct, frozen=True):
    """The part of a placement that events refer to."""

    id: str


class PageAnswer(msgspec.Struct, frozen=True):
    """The answer for a page."""

    slots: dict[str, Asked]


_decode_page = msgspec.json.Decoder(PageAnswer).decode
_decode_auction = msgspec.json.Decoder(dict[str, Any]).decode


class Browser:
    """One connection, used by one visitor after another."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = HTTPConnection(host, port, timeout=ANSWER_SECONDS_MAX)

    def request_page(self, visitor: SampleVisitor, sight: VisitedPage) -> dict[str, Asked]:
        """Ask for all placements of a page at once."""
        body = {"slots": sight.slots, "url": sight.address, "userId": str(visitor.id)}
        status, answer = self._send("POST", "/v1/serve/page", visitor, body)
        return _decode_page(answer).slots if status == HTTPStatus.OK else {}

    def hold_auction(self, visitor: SampleVisitor, slug: str) -> SeenOffer | None:
        body = {"userId": str(visitor.id), "placement": slug}
        status, answer = self._send("POST", "/api/v1/ads/serve", visitor, body)
        if status != HTTPStatus.OK:
            return None
        won = _decode_auction(answer)
        return msgspec.convert({**won, "id": won["adId"]}, SeenOffer)

    def report(self, visitor: SampleVisitor | None, events: list[Event]) -> None:
        self._send("POST", "/banners/events/batch", visitor, {"events": events})

    def fetch(self, visitor: SampleVisitor, address: str) -> None:
        """Load a pixel, or follow a click as far as our own redirect; the address may be a proxy's."""
        parts = urlsplit(address)
        self._send("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, visitor, None)

    def _send(
        self, method: str, path: str, visitor: SampleVisitor | None, body: dict[str, Any] | None
    ) -> tuple[int, bytes]:
        headers = {} if visitor is None else visitor.build_headers()
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            self._connection.request(
                method, path, None if body is None else msgspec.json.encode(body), headers
            )
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise BusyError(str(error)) from error
        if answer.status in BUSY:
            raise BusyError(f"It answers {answer.status}.")
        return answer.status, content
