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
    KnownIds,
    bound,
    genuine,
    offered_click,
    offered_impression,
    reported_click,
    reported_impression,
)
from adloom.events.ingest.batch import BODY_BYTES_MAX, Batch, Report, events_of
from adloom.events.ingest.ivt.detector import Judge, Trusting
from adloom.events.ingest.ivt.request_info import UNKNOWN, Circumstances
from adloom.events.ingest.request import ClickRequest, ImpressionRequest
from adloom.events.ingest.slicer import SLICE_EVENTS, Turns
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.events.log.append import LedgerAppender
from adloom.events.log.event import encoded
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import Answer, HotRequest, HotRoute, answer_head

IMPRESSION_PATH: Final = b"/banners/events/impression"
CLICK_PATH: Final = b"/banners/events/click"
BATCH_PATH: Final = b"/banners/events/batch"
PIXEL_PREFIX: Final = b"/i/"
REDIRECT_PREFIX: Final = b"/c/"
REDIRECT_SECONDS_MAX: Final = 1.0  # A reader who clicked does not wait longer for our books.

_GIF: Final = base64.b64decode(b"R0lGODlhAQABAPAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==")
_USER: Final = b"userId="
_NO_STORE: Final = (b"cache-control", b"no-store")
ACCEPTED: Final = Answer(answer_head(HTTPStatus.ACCEPTED, b"application/json"), b'{"accepted":true}')
PIXEL: Final = Answer(answer_head(HTTPStatus.OK, b"image/gif", _NO_STORE), _GIF)

_impressions: Final = BodyDecoder(ImpressionRequest)
_clicks: Final = BodyDecoder(ClickRequest)


def _unknown(request: HotRequest) -> Circumstances:
    del request
    return UNKNOWN


class EventRoutes:
    """Handlers of the events; `index` gives the current one, which a request asks for once."""

    def __init__(  # noqa: PLR0913 - a composition root names them all
        self,
        index: Callable[[], KnownIds],
        appender: LedgerAppender,
        tokens: TokenKeys,
        clock: Clock,
        *,
        suspicion: Judge | None = None,
        circumstances: Callable[[HotRequest], Circumstances] = _unknown,
    ) -> None:
        judge = suspicion or Trusting()
        self._index = index
        self._append = appender.append
        self._append_all = appender.append_all
        self._tokens = tokens
        self._now = clock.now
        self._sender_of = judge.sender_of
        self._suspicion_of = judge.suspicion_of
        self._circumstances_of = circumstances
        self._turns = Turns()
        # Plain counters, read by a collector: clicks that were led on without being in the ledger,
        # and the events of batches that were answered.
        self.clicks_lost = 0
        self.batched = 0
        self.batch_rejected = 0

    def routes(self) -> Sequence[HotRoute]:
        """List what this answers."""
        return (
            HotRoute(b"POST", IMPRESSION_PATH, is_prefix=False, handler=self.impression),
            HotRoute(b"POST", CLICK_PATH, is_prefix=False, handler=self.click),
            HotRoute(b"POST", BATCH_PATH, is_prefix=False, handler=self.batch, body_bytes_max=BODY_BYTES_MAX),
            HotRoute(b"GET", PIXEL_PREFIX, is_prefix=True, handler=self.pixel),
            HotRoute(b"GET", REDIRECT_PREFIX, is_prefix=True, handler=self.redirect),
        )

    def impression(self, request: HotRequest) -> asyncio.Future[Answer]:
        """Take the report of an impression."""
        return self.taken(_impressions.decode(request.body), request)

    def click(self, request: HotRequest) -> asyncio.Future[Answer]:
        """Take the report of a click."""
        return self.taken(_clicks.decode(request.body), request)

    def taken(self, report: Report, request: HotRequest) -> asyncio.Future[Answer]:
        """Take a report that a request brought, whichever way it is written."""
        now = self._now()
        binding = bound(report, known=self._index(), tokens=self._tokens, now=now)
        # Afterwards, because this counts: what is not accepted is no flood.
        suspicion = self._suspicion_of(self._sender_of(request), now)
        circumstances = self._circumstances_of(request)
        if isinstance(report, ImpressionRequest):
            return self._append(
                encoded(reported_impression(report, binding, circumstances, suspicion)), ACCEPTED
            )
        return self._append(encoded(reported_click(report, binding, circumstances, suspicion)), ACCEPTED)

    def batch(self, request: HotRequest) -> Answer | asyncio.Future[Answer]:
        """Take many reports at once; those that are refused are named, and the others go on."""
        events = events_of(request.body)
        batch = Batch(events, self._acceptance(request))
        if len(events) > SLICE_EVENTS:
            return self._turns.run(batch, lambda: self._finished(batch))
        batch.proceed(len(events))
        return self._finished(batch)

    def pixel(self, request: HotRequest) -> Answer | asyncio.Future[Answer]:
        """Count an impression by the image that was fetched for it."""
        return self.seen(request.path[len(PIXEL_PREFIX) :], request, PIXEL)

    def seen(self, token: bytes, request: HotRequest, answer: Answer) -> Answer | asyncio.Future[Answer]:
        """Count the impression of an offer, and give an answer when that is durable."""
        now = self._now()
        offer = genuine(token, tokens=self._tokens, now=now)
        if request.method == b"HEAD":
            return answer  # Somebody looks at the address; nobody looks at the banner.
        suspicion = self._suspicion_of(self._sender_of(request), now)
        event = offered_impression(
            offer, self._circumstances_of(request), suspicion, now=now, user_id=_user_of(request.query)
        )
        return self._append(encoded(event), answer)

    def redirect(self, request: HotRequest) -> Answer | asyncio.Future[Answer]:
        """Count a click and lead on to the banner's destination."""
        return self.clicked(request.path[len(REDIRECT_PREFIX) :], request)

    def clicked(self, token: bytes, request: HotRequest) -> Answer | asyncio.Future[Answer]:
        """Count the click on an offer and lead on: where the index says, never where the request does."""
        now = self._now()
        offer = genuine(token, tokens=self._tokens, now=now)
        destination = self._destination(offer)
        answer = redirect_to(destination)
        if request.method == b"HEAD":
            return answer
        suspicion = self._suspicion_of(self._sender_of(request), now)
        event = offered_click(
            offer, self._circumstances_of(request), suspicion, destination=destination, now=now
        )
        # The reader wants the shop, and the advertiser wants the reader, more than either wants
        # our count. So a ledger that is away or slow costs the count, which a metric shows.
        try:
            appended = self._append(encoded(event), answer)
        except UnavailableError:
            self.clicks_lost += 1
            return answer
        return self._led_on(appended, answer)

    def _acceptance(self, request: HotRequest) -> Callable[[Report], bytes]:
        """Make entries of the reports of one request; what is the same for all is looked up once."""
        known, now = self._index(), self._now()
        sender, circumstances = self._sender_of(request), self._circumstances_of(request)

        def accepted(report: Report) -> bytes:
            binding = bound(report, known=known, tokens=self._tokens, now=now)
            suspicion = self._suspicion_of(sender, now)
            if isinstance(report, ImpressionRequest):
                return encoded(reported_impression(report, binding, circumstances, suspicion))
            return encoded(reported_click(report, binding, circumstances, suspicion))

        return accepted

    def _finished(self, batch: Batch) -> asyncio.Future[Answer]:
        """Append what was accepted, all or nothing; the answer is given when it is durable."""
        appended = self._append_all(batch.entries, batch.answer())
        self.batched += len(batch.entries)
        self.batch_rejected += len(batch.rejected)
        return appended

    def _destination(self, offer: OfferToken) -> str:
        destination = self._index().destination(offer.campaign_id, offer.placement_id, offer.banner_id)
        if destination is None:
            raise BannerNotFoundError("The banner behind this link leads nowhere any more.")
        return destination

    def _led_on(self, appended: asyncio.Future[Answer], answer: Answer) -> asyncio.Future[Answer]:
        """Give the answer when the click is in the ledger, when it is not, or when that takes too long."""
        loop = appended.get_loop()
        led_on: asyncio.Future[Answer] = loop.create_future()

        def lead_on() -> None:
            if not led_on.done():
                led_on.set_result(answer)

        def settle(done: asyncio.Future[Answer]) -> None:
            timer.cancel()
            # A late success is one; that a future was given up is not known to be a loss.
            if not done.cancelled() and done.exception() is not None:
                self.clicks_lost += 1
            lead_on()

        timer = loop.call_later(REDIRECT_SECONDS_MAX, lead_on)
        appended.add_done_callback(settle)
        return led_on


def _user_of(query: bytes) -> UUID | None:
    """Read who has seen an offer, where its address tells; what makes no sense is nobody, since a pixel has no errors."""
    if not query.startswith(_USER):
        return None
    try:
        return UUID(query[len(_USER) :].decode("ascii"))
    except ValueError:
        return None


def redirect_to(destination: str) -> Answer:
    """Lead on to an address, this time."""
    # What an address may not carry in a header is escaped; what it has escaped already stays.
    location = quote(destination, safe="!#$%&'()*+,/:;=?@[]~").encode()
    return Answer(answer_head(HTTPStatus.FOUND, None, (b"location", location), _NO_STORE))
