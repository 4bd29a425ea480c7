"""The public routes that take events: decode, accept, append; answered when the event is durable."""

import asyncio
import base64
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from adloom.core.clock import Clock
from adloom.core.errors import BannerNotFoundError, UnavailableError
from adloom.ledger.accept import (
    KnownIds,
    accepted_click,
    accepted_impression,
    genuine,
    offered_click,
    offered_impression,
)
from adloom.ledger.append import LedgerAppender
from adloom.ledger.event import encoded
from adloom.ledger.request import ClickRequest, ImpressionRequest
from adloom.ledger.token import OfferToken, TokenKeys
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.hot import Answer, HotRequest, HotRoute, answer_head

IMPRESSION_PATH: Final = b"/banners/events/impression"
CLICK_PATH: Final = b"/banners/events/click"
PIXEL_PREFIX: Final = b"/i/"
REDIRECT_PREFIX: Final = b"/c/"
REDIRECT_SECONDS_MAX: Final = 1.0  # A reader who clicked does not wait longer for our books.

_GIF: Final = base64.b64decode(b"R0lGODlhAQABAPAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==")
_NO_STORE: Final = (b"cache-control", b"no-store")
ACCEPTED: Final = Answer(answer_head(HTTPStatus.ACCEPTED, b"application/json"), b'{"accepted":true}')
PIXEL: Final = Answer(answer_head(HTTPStatus.OK, b"image/gif", _NO_STORE), _GIF)

_impressions: Final = BodyDecoder(ImpressionRequest)
_clicks: Final = BodyDecoder(ClickRequest)


class EventRoutes:
    """Handlers of the events; `index` gives the current one, which a request asks for once."""

    def __init__(
        self, index: Callable[[], KnownIds], appender: LedgerAppender, tokens: TokenKeys, clock: Clock
    ) -> None:
        self._index = index
        self._append = appender.append
        self._tokens = tokens
        self._now = clock.now
        # A plain counter, read by a collector: clicks that were led on without being in the ledger.
        self.clicks_lost = 0

    def routes(self) -> Sequence[HotRoute]:
        """List what this answers."""
        return (
            HotRoute(b"POST", IMPRESSION_PATH, is_prefix=False, handler=self.impression),
            HotRoute(b"POST", CLICK_PATH, is_prefix=False, handler=self.click),
            HotRoute(b"GET", PIXEL_PREFIX, is_prefix=True, handler=self.pixel),
            HotRoute(b"GET", REDIRECT_PREFIX, is_prefix=True, handler=self.redirect),
        )

    def impression(self, request: HotRequest) -> asyncio.Future[Answer]:
        """Take the report of an impression."""
        report = _impressions.decode(request.body)
        event = accepted_impression(report, known=self._index(), tokens=self._tokens, now=self._now())
        return self._append(encoded(event), ACCEPTED)

    def click(self, request: HotRequest) -> asyncio.Future[Answer]:
        """Take the report of a click."""
        report = _clicks.decode(request.body)
        event = accepted_click(report, known=self._index(), tokens=self._tokens, now=self._now())
        return self._append(encoded(event), ACCEPTED)

    def pixel(self, request: HotRequest) -> Answer | asyncio.Future[Answer]:
        """Count an impression by the image that was fetched for it."""
        now = self._now()
        offer = genuine(request.path[len(PIXEL_PREFIX) :], tokens=self._tokens, now=now)
        if request.method == b"HEAD":
            return PIXEL  # Somebody looks at the address; nobody looks at the banner.
        return self._append(encoded(offered_impression(offer, now=now)), PIXEL)

    def redirect(self, request: HotRequest) -> Answer | asyncio.Future[Answer]:
        """Count a click and lead on to the banner's destination: the index's, never one of the request's."""
        now = self._now()
        offer = genuine(request.path[len(REDIRECT_PREFIX) :], tokens=self._tokens, now=now)
        destination = self._destination(offer)
        answer = _redirect_to(destination)
        if request.method == b"HEAD":
            return answer
        event = offered_click(offer, destination=destination, now=now)
        # The reader wants the shop, and the advertiser wants the reader, more than either wants
        # our count. So a ledger that is away or slow costs the count, which a metric shows.
        try:
            appended = self._append(encoded(event), answer)
        except UnavailableError:
            self.clicks_lost += 1
            return answer
        return self._led_on(appended, answer)

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


def _redirect_to(destination: str) -> Answer:
    # What an address may not carry in a header is escaped; what it has escaped already stays.
    location = quote(destination, safe="!#$%&'()*+,/:;=?@[]~").encode()
    return Answer(answer_head(HTTPStatus.FOUND, None, (b"location", location), _NO_STORE))
