"""From offers to the bytes of an answer, and to the event log; no answer waits for the log."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import IdSource, OpaqueId, RequestId, read_uuid
from adloom.events.ingest.token import SLOT_MAX, TokenSigner
from adloom.events.log.event import Served, encode_event
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.eligibility.placement_state import RenderedOffer
from adloom.serving.index.index import IndexedPlacement
from adloom.serving.index.rendered_banner import unpack_ids
from adloom.serving.request.context import USER_ID
from adloom.serving.request.overrides import parse_query

NO_LEASES: Final = (0,) * (SLOT_MAX + 1)
NEVER: Final = datetime.min.replace(tzinfo=UTC)
MILLISECONDS = tuple(b".%03dZ" % millisecond for millisecond in range(1000))


class AnswerEncoder:
    """Signs and encodes answers."""

    def __init__(self, signer: TokenSigner, ids: IdSource, *, public_url: str) -> None:
        self._sign = signer.sign
        self._seal_user = signer.seal_user
        self._new_id = ids.make_opaque
        origin = msgspec.json.encode(public_url)[1:-1]
        self._impression_prefix = b'","impressionUrl":"%b/i/' % origin
        self._click_prefix = b'","clickUrl":"%b/c/' % origin
        self._stamp = MillisecondStamp()

    def encode_answer(  # noqa: PLR0913, PLR0917 - on the path of every request, where names would cost
        self,
        placement: IndexedPlacement,
        offers: Sequence[RenderedOffer],
        request_id: OpaqueId,
        now: datetime,
        second: int,
        leases: Sequence[int] = NO_LEASES,
        user_id: UUID | None = None,
    ) -> bytes:
        """Encode what fills one placement; each offer has its lease, and its pixel the user, for frequency caps."""
        issued = request_id.bytes
        user = b"" if user_id is None else b"?u=" + self._seal_user(issued, user_id.bytes)
        sign, impression, click = self._sign, self._impression_prefix, self._click_prefix
        micros, stamp = now.microsecond, self._stamp
        # One join of many parts: formatting would parse the format and copy twice.
        parts = [placement.head]
        for slot, offer in enumerate(offers):
            token = sign(offer.token_terms, issued, second, slot, leases[slot], micros)
            candidate = offer.candidate
            parts += (
                b"," if slot else b"",
                offer.ids,
                candidate.creative,
                b",",
                candidate.placing,
                b',"trackingToken":"',
                token,
                impression,
                token,
                user,
                click,
                token,
                b'"}',
            )
        parts += (
            b'],"requestId":"',
            str(request_id).encode(),
            b'","servedAt":"',
            stamp.written if second == stamp.second else stamp.begin(now, second),
            MILLISECONDS[micros // 1000],
            b'"}',
        )
        return b"".join(parts)

    def encode_page(self, results: Sequence[tuple[bytes, bytes]], now: datetime, second: int) -> bytes:
        """Combine the answers of a page's placements, each under its slug as JSON."""
        return b'{"results":{%b},"requestId":"%b","servedAt":"%b"}' % (
            b",".join([b"%b:%b" % result for result in results]),
            str(self._new_id()).encode(),
            self._stamp.format(now, second),
        )


class MillisecondStamp:
    """Formats moments as RFC 3339 with milliseconds; the part up to the second is cached."""

    def __init__(self) -> None:
        self.second = -1  # None yet.
        self.written = b""  # Up to the second.
        self._first = self._last = NEVER  # Of the moments in it.

    def find_second(self, moment: datetime) -> int:
        """Return the second since the epoch that a moment in UTC is in; `timestamp` takes three times as long."""
        if not self._first <= moment <= self._last:
            self.begin(moment, int(moment.timestamp()))
        return self.second

    def format(self, moment: datetime, second: int) -> bytes:
        """Format a moment in UTC, given its second since the epoch."""
        written = self.written if second == self.second else self.begin(moment, second)
        return written + MILLISECONDS[moment.microsecond // 1000]

    def begin(self, moment: datetime, second: int) -> bytes:
        """Return what is written in a new second."""
        self.second = second
        self._first = moment.replace(microsecond=0)
        self._last = moment.replace(microsecond=999_999)
        self.written = self._first.replace(tzinfo=None).isoformat().encode()
        return self.written


Publish = Callable[[bytes], object]


class ServedEventPublisher:
    """Publishes every offer of every answer; `publish` takes an encoded event and does not wait."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish

    def publish(  # noqa: PLR0913 - all that an offer is of
        self,
        request: FastRequest,
        placement: IndexedPlacement,
        offers: Sequence[RenderedOffer],
        *,
        request_id: OpaqueId,
        now: datetime,
        user_id: UUID | None,
    ) -> None:
        """Publish the offers of an answer; a HEAD request was offered nothing."""
        if not offers or request.method == b"HEAD":
            return
        served_to = user_id or parse_user(request.query)
        in_request = RequestId(read_uuid(request_id.bytes))
        for slot, offer in enumerate(offers):
            banner_id, campaign_id = unpack_ids(offer.candidate.pair)
            served = Served(
                request_id=in_request,
                slot=slot,
                banner_id=banner_id,
                placement_id=placement.id,
                campaign_id=campaign_id,
                placement_type=placement.type,
                served_at=now,
                user_id=served_to,
            )
            self._publish(encode_event(served))


def parse_user(query: bytes) -> UUID | None:
    return parse_query(query).user_id if USER_ID in query else None
