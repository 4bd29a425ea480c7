"""The serve route of the public path: read the clock once, decide once, encode once."""

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import IdSource
from adloom.delivery.decide import decide
from adloom.delivery.index import Candidate, Index
from adloom.ledger.token import TokenSigner
from adloom.runtime.http.hot import Answer, HotRequest, HotRoute, answer_head, problem_answer

SERVE_PREFIX = b"/banners/serve/"

SERVED_HEAD = answer_head(
    HTTPStatus.OK,
    b"application/json",
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


# Made once: whoever guesses slugs gets this answer as fast as a right one.
NO_SUCH_PLACEMENT = problem_answer(PlacementNotFoundError("No active placement has this slug."))


class ServeRoutes:
    """Answers which ads fill a placement."""

    def __init__(
        self, index: Callable[[], Index], signer: TokenSigner, clock: Clock, ids: IdSource, *, public_url: str
    ) -> None:
        self._index = index
        self._sign = signer.sign
        self._now = clock.now
        self._new_id = ids.written
        origin = msgspec.json.encode(public_url)[1:-1]
        self._impression_prefix = b'","impressionUrl":"%b/i/' % origin
        self._click_prefix = b'","clickUrl":"%b/c/' % origin
        self._stamp = MillisecondStamp()
        self.served = 0
        self.empty = 0

    def routes(self) -> list[HotRoute]:
        """List the routes, for the table of the hot path."""
        return [HotRoute(b"GET", SERVE_PREFIX, is_prefix=True, handler=self.serve)]

    def serve(self, request: HotRequest) -> Answer:
        """Answer `GET /banners/serve/{slug}`."""
        placement = self._index().by_slug.get(request.path[len(SERVE_PREFIX) :])
        if placement is None or not placement.is_active:
            return NO_SUCH_PLACEMENT
        now = self._now()
        offers = decide(placement, now=now)
        if offers:
            self.served += 1
        else:
            self.empty += 1
        second = int(now.timestamp())
        request_id = self._new_id()
        banners = self._encoded(offers, request_id.bytes, second)
        return Answer(
            SERVED_HEAD,
            b'%b%b],"requestId":"%b","servedAt":"%b"}'
            % (placement.head, banners, str(request_id).encode(), self._stamp.of(now, second)),
        )

    def _encoded(self, offers: list[Candidate], request_id: bytes, issued_at: int) -> bytes:
        parts: list[bytes] = []
        for slot, offer in enumerate(offers):
            token = self._sign(offer.token_ids, request_id=request_id, issued_at=issued_at, slot=slot)
            parts.append(
                b'%b,"trackingToken":"%b%b%b%b%b"}'
                % (offer.head, token, self._impression_prefix, token, self._click_prefix, token)
            )
        return b",".join(parts)


class MillisecondStamp:
    """Writes moments as RFC 3339 with milliseconds; the second is written once for all its requests."""

    def __init__(self) -> None:
        self._second: int | None = None
        self._written = b""

    def of(self, moment: datetime, second: int) -> bytes:
        """Write a moment in UTC, given the second since the epoch that it lies in."""
        if second != self._second:
            self._second = second
            self._written = moment.replace(microsecond=0, tzinfo=None).isoformat().encode()
        return b"%b.%03dZ" % (self._written, moment.microsecond // 1000)
