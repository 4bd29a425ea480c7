"""The public routes that take events: decode, accept, append. The answer waits until the event is durable."""

import asyncio
import base64
from collections.abc import Callable, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import quote
from uuid import UUID

from adloom.core.clock import Clock
from adloom.core.errors import BannerNotFoundError, ForbiddenError, UnavailableError
from adloom.core.query_string import add_parameters
from adloom.events.ingest.accept import (
    UNKNOWN_REQUEST,
    AnyReport,
    CatalogIds,
    ClickRequest,
    ImpressionRequest,
    NamedClick,
    NamedImpression,
    Report,
    RequestInfo,
    Trust,
    build_click_report,
    build_event,
    build_impression_report,
    encode_offered,
    require_token,
    validate_report,
    verify_token,
)
from adloom.events.ingest.batch import (
    BODY_BYTES_MAX,
    SLICE_EVENTS,
    BatchReport,
    BatchSlicer,
    ReportBatch,
    split_batch,
)
from adloom.events.ingest.bounds import encode_bounded
from adloom.events.ingest.conversion_reports import ConversionRequest, build_conversion
from adloom.events.ingest.ivt.detector import Detector, NullDetector
from adloom.events.ingest.ivt.flags import NO_FLAGS, Sender, TrafficFlags
from adloom.events.ingest.reporters import NoReporters, Reporters
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.events.log.append import EventAppender
from adloom.events.log.event import Mark, encode_event
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    make_problem_answer,
)
from adloom.targeting.values import encode_host

IMPRESSION_PATH: Final = b"/banners/events/impression"
CLICK_PATH: Final = b"/banners/events/click"
BATCH_PATH: Final = b"/banners/events/batch"
CLICK_ID: Final = "adloom_click"  # The parameter of a landing page.
PIXEL_PREFIX: Final = b"/i/"
REDIRECT_PREFIX: Final = b"/c/"
REDIRECT_SECONDS_MAX: Final = 1.0  # A visitor who clicked does not wait longer for our count.

_GIF: Final = base64.b64decode(b"R0lGODlhAQABAPAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==")
_USER: Final = b"userId="  # As callers write it themselves.
SEALED_USER: Final = b"u="  # As our own answers have it.
_NO_STORE: Final = (b"cache-control", b"no-store")
ACCEPTED: Final = FastAnswer(encode_head(HTTPStatus.ACCEPTED, b"application/json"), b'{"accepted":true}')
PIXEL: Final = FastAnswer(encode_head(HTTPStatus.OK, b"image/gif", _NO_STORE), _GIF)
# A browser that has fetched the redirect ahead follows it without asking again: the click itself would not be counted.
NOT_AHEAD: Final = make_problem_answer(
    ForbiddenError("A click is counted here. Ask when a visitor follows the link.", code="CLICK_PREFETCHED")
)

_impressions: Final = BodyDecoder(ImpressionRequest)
_clicks: Final = BodyDecoder(ClickRequest)
_named_impressions: Final = BodyDecoder(NamedImpression, described_as=ImpressionRequest)
_named_clicks: Final = BodyDecoder(NamedClick, described_as=ClickRequest)


def _ignore_seen(sender: Sender, offer: OfferToken, second: float) -> None:
    del sender, offer, second


def _ignore_request(request: FastRequest) -> RequestInfo:
    del request
    return UNKNOWN_REQUEST


class OfferFlagger(Protocol):
    """Flags what is doubtful about a report of an offer; an immediate one is of the request that asked for the offer."""

    def flag_report(  # noqa: PLR0913, PLR0917 - on the path of every event, where names would cost
        self,
        request: FastRequest,
        sender: Sender,
        offer: OfferToken,
        page_url: str | None,
        is_click: bool,  # noqa: FBT001 - likewise
        second: float,
        is_immediate: bool,  # noqa: FBT001 - likewise
        /,
    ) -> TrafficFlags: ...


class NoOfferFlagger:
    """Flags nothing."""

    def flag_report(self, *about: object) -> TrafficFlags:
        del about
        return NO_FLAGS


class EventRoutes:
    """Handlers of events; `index` returns the current one, and a request calls it once."""

    def __init__(  # noqa: PLR0913 - a composition root names them all
        self,
        index: Callable[[], CatalogIds],
        appender: EventAppender,
        tokens: TokenKeys,
        clock: Clock,
        *,
        detector: Detector | None = None,
        offer_check: OfferFlagger | None = None,
        read_request_info: Callable[[FastRequest], RequestInfo] = _ignore_request,
        reporters: Reporters | None = None,
        refuses_unbound: bool = False,
        on_seen: Callable[[Sender, OfferToken, float], None] = _ignore_seen,
    ) -> None:
        detector = detector or NullDetector()
        self._index = index
        self._append = appender.append
        self._append_for = appender.append_for
        self._append_all = appender.append_all
        self._tokens = tokens
        self._verify = tokens.verify
        self._now = clock.now
        self._identify_sender = detector.identify_sender
        self._flag_event = detector.flag_event
        self._flag_unbound = detector.flag_unbound
        self._flag_report = (offer_check or NoOfferFlagger()).flag_report
        self._read_request_info = read_request_info
        self._reporters = reporters or NoReporters()
        self._refuses_unbound = refuses_unbound
        self._on_seen = on_seen  # Told of every impression with a token.
        self._slicer = BatchSlicer()
        # Plain counters, read by the metrics: clicks that were redirected without being stored, and the events of
        # batches.
        self.clicks_lost = 0
        self.batched = 0
        self.batch_rejected = 0

    def list_routes(self) -> Sequence[FastRoute]:
        return (
            FastRoute(b"POST", IMPRESSION_PATH, is_prefix=False, handler=self.impression),
            FastRoute(b"POST", CLICK_PATH, is_prefix=False, handler=self.click),
            FastRoute(
                b"POST", BATCH_PATH, is_prefix=False, handler=self.batch, body_bytes_max=BODY_BYTES_MAX
            ),
            FastRoute(b"GET", PIXEL_PREFIX, is_prefix=True, handler=self.pixel),
            FastRoute(b"GET", REDIRECT_PREFIX, is_prefix=True, handler=self.redirect),
        )

    def impression(self, request: FastRequest) -> DeferredAnswer:
        accepted = self._accept_named(_named_impressions.decode(request.body), request)
        return accepted or self.accept_report(_impressions.decode(request.body), request)

    def click(self, request: FastRequest) -> DeferredAnswer:
        accepted = self._accept_named(_named_clicks.decode(request.body), request)
        return accepted or self.accept_report(_clicks.decode(request.body), request)

    def _accept_named(
        self, report: NamedImpression | NamedClick, request: FastRequest
    ) -> DeferredAnswer | None:
        """Store a report that names the offer of its token as we do; None for any other."""
        if report.tracking_token is None:
            return None
        now = self._now()
        offer = self._verify(report.tracking_token.encode(), now)
        if type(offer) is not OfferToken:
            return None
        banner_id, placement_id, campaign_id = offer.terms.ids
        # We have signed the ids of a report that fits its token, so they exist.
        if (
            report.banner_id != banner_id
            or report.placement_id != placement_id
            or report.campaign_id not in (campaign_id, None)
        ):
            return None
        sender = request.sender or self._identify_sender(request)
        entry = self._encode_offered(report, offer, request, sender, self._read_request_info(request), now)
        return self._append_for(entry, ACCEPTED)

    def accept_report(
        self, report: Report, request: FastRequest, offer: OfferToken | None = None
    ) -> DeferredAnswer:
        """Store a report; its offer is given if the token was read already."""
        sender = request.sender or self._identify_sender(request)
        info, now = self._read_request_info(request), self._now()
        entry = self._accept(report, request, self._index(), sender, info, now, offer)
        return self._append_for(entry, ACCEPTED)

    def batch(self, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Store many reports at once; the answer names those that were rejected."""
        events = split_batch(request.body)
        batch = ReportBatch(events, self._build_acceptor(request))
        if len(events) > SLICE_EVENTS:
            return self._slicer.run(batch, lambda: self._append_batch(batch))
        batch.process(len(events))
        return self._append_batch(batch)

    def pixel(self, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]:
        return self.record_impression(request.path[len(PIXEL_PREFIX) :], request, PIXEL)

    def record_impression(
        self, token: bytes, request: FastRequest, answer: FastAnswer, *, is_immediate: bool = False
    ) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Store the impression of an offer; an immediate one is shown by the request that asked for it."""
        now = self._now()
        offer = verify_token(token, tokens=self._tokens, now=now)
        if request.method == b"HEAD":
            return answer  # The client only checks the address; no visitor sees the banner.
        report = build_impression_report(offer, self._find_user(request.query, offer))
        sender, info = self._identify_sender(request), self._read_request_info(request)
        entry = self._encode_offered(report, offer, request, sender, info, now, is_immediate)
        return self._append(entry, answer)

    def redirect(self, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]:
        return self.record_click(request.path[len(REDIRECT_PREFIX) :], request)

    def record_click(
        self, token: bytes, request: FastRequest, *, is_immediate: bool = False
    ) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Store the click on an offer and redirect: to where the index says, never to where the request does."""
        now = self._now()
        offer = verify_token(token, tokens=self._tokens, now=now)
        destination = self._find_destination(offer)
        answer = build_redirect(self._add_click_id(destination, offer, token))
        if request.method == b"HEAD":
            return answer
        report = build_click_report(offer, destination)
        sender, info = self._identify_sender(request), self._read_request_info(request)
        if Mark.PREFETCH in sender.marks:
            answer = NOT_AHEAD
        entry = self._encode_offered(report, offer, request, sender, info, now, is_immediate)
        # The visitor wants the shop, and the advertiser wants the visitor, more than either wants our count. So a log
        # that is away or slow costs the count, which a metric shows.
        try:
            appended = self._append(entry, answer)
        except UnavailableError:
            self.clicks_lost += 1
            return answer
        return self._redirect_in_time(appended, answer)

    def _build_acceptor(self, request: FastRequest) -> Callable[[BatchReport], bytes]:
        """Return what turns the reports of one request into entries; what they share is looked up once."""
        known, now = self._index(), self._now()
        sender, info = self._identify_sender(request), self._read_request_info(request)

        def accept(report: BatchReport) -> bytes:
            if isinstance(report, ConversionRequest):
                return encode_conversion(report, request, self._tokens, self._reporters, now)
            return self._accept(report, request, known, sender, info, now)

        return accept

    def _accept(  # noqa: PLR0913, PLR0917 - on the path of every event, where names would cost
        self,
        report: Report,
        request: FastRequest,
        known: CatalogIds,
        sender: Sender,
        info: RequestInfo,
        now: datetime,
        offer: OfferToken | None = None,
    ) -> bytes:
        offer = validate_report(report, offer, known=known, tokens=self._tokens, now=now)
        if offer is not None:
            return self._encode_offered(report, offer, request, sender, info, now)
        trust = Trust.API_KEY if self._reporters.is_reporter(request, report.placement_id) else Trust.NONE
        if trust is Trust.NONE and self._refuses_unbound:
            raise require_token()
        is_assigned = known.is_assigned(report.campaign_id, report.placement_id, report.banner_id)
        flags = self._flag_unbound(sender, now.timestamp())
        return encode_bounded(
            build_event(report, report, info, flags, now=now, trust=trust, is_assigned=is_assigned)
        )

    def _encode_offered(  # noqa: PLR0913, PLR0917 - likewise
        self,
        report: AnyReport,
        offer: OfferToken,
        request: FastRequest,
        sender: Sender,
        info: RequestInfo,
        now: datetime,
        is_immediate: bool = False,  # noqa: FBT001, FBT002 - likewise
    ) -> bytes:
        is_click, second = report.is_click, offer.read_at
        if not is_click:
            self._on_seen(sender, offer, second)
        flags = NO_FLAGS
        if not sender.marks:
            flags = self._flag_report(request, sender, offer, report.page_url, is_click, second, is_immediate)
        # Afterwards, because it counts: neither a report that is not accepted nor a doubtful one counts as a flood.
        if not flags.marks:
            flags = self._flag_event(sender, second, offer, is_click)
        return encode_offered(report, offer, info, flags, now)

    def _append_batch(self, batch: ReportBatch) -> asyncio.Future[FastAnswer]:
        """Append the accepted events, all or none; the future has the answer when they are durable."""
        appended = self._append_all(batch.entries, batch.build_answer())
        self.batched += len(batch.entries)
        self.batch_rejected += len(batch.rejected)
        return appended

    def _find_user(self, query: bytes, offer: OfferToken) -> UUID | None:
        """Return the user of a pixel's address, sealed or not; None where it makes no sense: a pixel has no errors."""
        if query.startswith(SEALED_USER):
            return offer.signer.open_user(query[len(SEALED_USER) :], offer.request_id.bytes)
        if not query.startswith(_USER):
            return None
        try:
            return UUID(query[len(_USER) :].decode("ascii"))
        except ValueError:
            return None

    def _find_destination(self, offer: OfferToken) -> str:
        destination = self._index().find_destination(offer.campaign_id, offer.placement_id, offer.banner_id)
        if destination is None:
            raise BannerNotFoundError("The banner behind this link leads nowhere any more.")
        return destination

    def _add_click_id(self, destination: str, offer: OfferToken, token: bytes) -> str:
        """Add the token to the address of the landing page, so that the shop can report a conversion of the click."""
        if not self._index().passes_click_id(offer.campaign_id, offer.placement_id):
            return destination
        return add_parameters(destination, {CLICK_ID: token.decode()})

    def _redirect_in_time(
        self, appended: asyncio.Future[FastAnswer], answer: FastAnswer
    ) -> asyncio.Future[FastAnswer]:
        """Answer when the click is stored, when that has failed, or when it takes too long."""
        loop = appended.get_loop()
        redirected: asyncio.Future[FastAnswer] = loop.create_future()

        def redirect() -> None:
            if not redirected.done():
                redirected.set_result(answer)

        def settle(done: asyncio.Future[FastAnswer]) -> None:
            timer.cancel()
            # A late success is one; whether a cancelled one is lost is not known.
            if not done.cancelled() and done.exception() is not None:
                self.clicks_lost += 1
            redirect()

        timer = loop.call_later(REDIRECT_SECONDS_MAX, redirect)
        appended.add_done_callback(settle)
        return redirected


def encode_conversion(
    report: ConversionRequest, request: FastRequest, tokens: TokenKeys, reporters: Reporters, now: datetime
) -> bytes:
    """Build the entry of a conversion whose token is ours."""
    offer = verify_token(report.tracking_token.encode("utf-8", "replace"), tokens=tokens, now=now)
    by_key = reporters.is_conversion_reporter(request, offer.campaign_id)
    return encode_event(build_conversion(report, offer, now=now, by_key=by_key))


def build_redirect(destination: str) -> FastAnswer:
    # What a header may not carry is escaped; what the address has escaped already stays.
    address = destination if destination.isascii() else encode_host(destination)
    location = quote(address, safe="!#$%&'()*+,/:;=?@[]~").encode()
    return FastAnswer(encode_head(HTTPStatus.FOUND, None, (b"location", location), _NO_STORE))
