"""The public route that takes conversions: decode, verify the token, append. The answer waits until it is durable."""

import asyncio
from collections.abc import Sequence
from typing import Final

from adloom.core.clock import Clock
from adloom.events.ingest.api import ACCEPTED, encode_conversion
from adloom.events.ingest.conversion_reports import ConversionRequest
from adloom.events.ingest.reporters import NoReporters, Reporters
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.append import EventAppender
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoute

CONVERSION_PATH: Final = b"/events/conversion"

_conversions: Final = BodyDecoder(ConversionRequest)


class ConversionRoutes:
    """Takes conversions from shops, whether a browser or a server sends them."""

    def __init__(
        self,
        appender: EventAppender,
        tokens: TokenKeys,
        clock: Clock,
        *,
        reporters: Reporters | None = None,
    ) -> None:
        self._append = appender.append
        self._tokens = tokens
        self._now = clock.now
        self._reporters = reporters or NoReporters()

    def list_routes(self) -> Sequence[FastRoute]:
        return (FastRoute(b"POST", CONVERSION_PATH, is_prefix=False, handler=self.conversion),)

    def conversion(self, request: FastRequest) -> asyncio.Future[FastAnswer]:
        report = _conversions.decode(request.body)
        return self._append(
            encode_conversion(report, request, self._tokens, self._reporters, self._now()), ACCEPTED
        )
