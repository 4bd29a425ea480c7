"""The public routes that take events: decode, accept, append; answered when the event is durable."""

import asyncio
import base64
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import quote
from uuid import UUID

from adloom.core.clock import Clock
from adloom.core.errors import BannerNotFoundError, UnavailableError
from adloom.events.ingest.accept import (
    CatalogIds,
    build_offered_click,
    build_offered_impression,
    build_reported_click,
    build_reported_impression,
    validate_report,
    verify_token,
)
from adloom.events.ingest.batch import BODY_BYTES_MAX, EventBatch, Report, split_batch
from adloom.events.ingest.ivt.detector import Detector, NullDetector
from adloom.events.ingest.ivt.request_info import UNKNOWN_REQUEST, RequestInfo
from adloom.events.ingest.request import ClickRequest, ImpressionRequest
from adloom.events.ingest.slicer import SLICE_EVENTS, BatchSlicer
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.events.log.append import EventAppender
from adloom.events.log.event import encode_event
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoute, encode_head

IMPRESSION_PATH: Final = b"/banners/events/impression"
CLICK_PATH: Final = b"/banners/events/click"
BATCH_PATH: Final = b"/banners/events/batch"
PIXEL_PREFIX: Final = b"/i/"
REDIRECT_PREFIX: Final = b"/c/"
REDIRECT_SECONDS_MAX: Final = 1.0  # A reader who clicked does not wait longer for our books.

_GIF: Final = base64.b64decode(b"R0lGODlhAQABAPAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==")
_USER: Final = b"userId="
_NO_STORE: Final = (b"cache-control", b"no-store")
ACCEPTED: Final = FastAnswer(encode_head(HTTPStatus.ACCEPTED, b"application/json"), b'{"accepted":true}')
PIXEL: Final = FastAnswer(encode_head(HTTPStatus.OK, b"image/gif", _NO_STORE), _GIF)

_impressions: Final = BodyDecoder(ImpressionRequest)
_clicks: Final = BodyDecoder(ClickRequest)


def _ignore_request(request: FastRequest) -> RequestInfo:
    del request
    return UNKNOWN_REQUEST


class EventRoutes:
    """Handlers of the events; `index` gives the current one, which a request asks for once."""

    def __init__(  # noqa: PLR0913 - a composition root names them all
        self,
        index: Callable[[], CatalogIds],
        appender: EventAppender,
        tokens: TokenKeys,
        clock: Clock,
        *,
        detector: Detector | None = None,
        read_request_info: Callable[[FastRequest], RequestInfo] = _ignore_request,
    ) -> None:
        detector = detector or NullDetector()
        self._index = index
        self._append = appender.append
        self._append_all = appender.append_all
        self._tokens = tokens
        self._now = clock.now
        self._identify_sender = detector.identify_sender
        self._flag_event = detector.flag_event
        self._read_request_info = read_request_info
        self._slicer = BatchSlicer()
        # Plain counters, read by a collector: clicks that were led on without being in the ledger,
        # and the events of batches that were answered.
        self.clicks_lost = 0
        self.batched = 0
        self.batch_rejected = 0

    def routes(self) -> Sequence[FastRoute]:
        """List what this answers."""
        return (
            FastRoute(b"POST", IMPRESSION_PATH, is_prefix=False, handler=self.impression),
            FastRoute(b"POST", CLICK_PATH, is_prefix=False, handler=self.click),
            FastRoute(
                b"POST", BATCH_PATH, is_prefix=False, handler=self.batch, body_bytes_max=BODY_BYTES_MAX
            ),
            FastRoute(b"GET", PIXEL_PREFIX, is_prefix=True, handler=self.pixel),
            FastRoute(b"GET", REDIRECT_PREFIX, is_prefix=True, handler=self.redirect),
        )

    def impression(self, request: FastRequest) -> asyncio.Future[FastAnswer]:
        """Take the report of an impression."""
        return self.accept_report(_impressions.decode(request.body), request)

    def click(self, request: FastRequest) -> asyncio.Future[FastAnswer]:
        """Take the report of a click."""
        return self.accept_report(_clicks.decode(request.body), request)

    def accept_report(self, report: Report, request: FastRequest) -> asyncio.Future[FastAnswer]:
        """Take a report that a request brought, whichever way it is written."""
        now = self._now()
        attribution = validate_report(report, known=self._index(), tokens=self._tokens, now=now)
        # Afterwards, because this counts: what is not accepted is no flood.
        flags = self._flag_event(self._identify_sender(request), now)
        info = self._read_request_info(request)
        if isinstance(report, ImpressionRequest):
            return self._append(
                encode_event(build_reported_impression(report, attribution, info, flags)), ACCEPTED
            )
        return self._append(encode_event(build_reported_click(report, attribution, info, flags)), ACCEPTED)

    def batch(self, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Take many reports at once; those that are refused are named, and the others go on."""
        events = split_batch(request.body)
        batch = EventBatch(events, self._build_acceptor(request))
        if len(events) > SLICE_EVENTS:
            return self._slicer.run(batch, lambda: self._append_batch(batch))
        batch.process(len(events))
        return self._append_batch(batch)

    def pixel(self, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Count an impression by the image that was fetched for it."""
        return self.record_impression(request.path[len(PIXEL_PREFIX) :], request, PIXEL)

    def record_impression(
        self, token: bytes, request: FastRequest, answer: FastAnswer
    ) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Count the impression of an offer, and give an answer when that is durable."""
        now = self._now()
        offer = verify_token(token, tokens=self._tokens, now=now)
        if request.method == b"HEAD":
            return answer  # Somebody looks at the address; nobody looks at the banner.
        flags = self._flag_event(self._identify_sender(request), now)
        event = build_offered_impression(
            offer, self._read_request_info(request), flags, now=now, user_id=_parse_user(request.query)
        )
        return self._append(encode_event(event), answer)

    def redirect(self, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Count a click and lead on to the banner's destination."""
        return self.record_click(request.path[len(REDIRECT_PREFIX) :], request)

    def record_click(self, token: bytes, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Count the click on an offer and lead on: where the index says, never where the request does."""
        now = self._now()
        offer = verify_token(token, tokens=self._tokens, now=now)
        destination = self._find_destination(offer)
        answer = build_redirect(destination)
        if request.method == b"HEAD":
            return answer
        flags = self._flag_event(self._identify_sender(request), now)
        event = build_offered_click(
            offer, self._read_request_info(request), flags, destination=destination, now=now
        )
        # The reader wants the shop, and the advertiser wants the reader, more than either wants
        # our count. So a ledger that is away or slow costs the count, which a metric shows.
        try:
            appended = self._append(encode_event(event), answer)
        except UnavailableError:
            self.clicks_lost += 1
            return answer
        return self._redirect_in_time(appended, answer)

    def _build_acceptor(self, request: FastRequest) -> Callable[[Report], bytes]:
        """Make entries of the reports of one request; what is the same for all is looked up once."""
        known, now = self._index(), self._now()
        sender, info = self._identify_sender(request), self._read_request_info(request)

        def accepted(report: Report) -> bytes:
            attribution = validate_report(report, known=known, tokens=self._tokens, now=now)
            flags = self._flag_event(sender, now)
            if isinstance(report, ImpressionRequest):
                return encode_event(build_reported_impression(report, attribution, info, flags))
            return encode_event(build_reported_click(report, attribution, info, flags))

        return accepted

    def _append_batch(self, batch: EventBatch) -> asyncio.Future[FastAnswer]:
        """Append what was accepted, all or nothing; the answer is given when it is durable."""
        appended = self._append_all(batch.entries, batch.build_answer())
        self.batched += len(batch.entries)
        self.batch_rejected += len(batch.rejected)
        return appended

    def _find_destination(self, offer: OfferToken) -> str:
        destination = self._index().destination(offer.campaign_id, offer.placement_id, offer.banner_id)
        if destination is None:
            raise BannerNotFoundError("The banner behind this link leads nowhere any more.")
        return destination

    def _redirect_in_time(
        self, appended: asyncio.Future[FastAnswer], answer: FastAnswer
    ) -> asyncio.Future[FastAnswer]:
        """Give the answer when the click is in the ledger, when it is not, or when that takes too long."""
        loop = appended.get_loop()
        led_on: asyncio.Future[FastAnswer] = loop.create_future()

        def lead_on() -> None:
            if not led_on.done():
                led_on.set_result(answer)

        def settle(done: asyncio.Future[FastAnswer]) -> None:
            timer.cancel()
            # A late success is one; that a future was given up is not known to be a loss.
            if not done.cancelled() and done.exception() is not None:
                self.clicks_lost += 1
            lead_on()

        timer = loop.call_later(REDIRECT_SECONDS_MAX, lead_on)
        appended.add_done_callback(settle)
        return led_on


def _parse_user(query: bytes) -> UUID | None:
    """Read who has seen an offer, where its address tells; what makes no sense is nobody, since a pixel has no errors."""
    if not query.startswith(_USER):
        return None
    try:
        return UUID(query[len(_USER) :].decode("ascii"))
    except ValueError:
        return None


def build_redirect(destination: str) -> FastAnswer:
    """Lead on to an address, this time."""
    # What an address may not carry in a header is escaped; what it has escaped already stays.
    location = quote(destination, safe="!#$%&'()*+,/:;=?@[]~").encode()
    return FastAnswer(encode_head(HTTPStatus.FOUND, None, (b"location", location), _NO_STORE))
