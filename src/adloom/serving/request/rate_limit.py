"""The rate limit of the public routes: requests a minute of a client address."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from time import monotonic

import msgspec

from adloom.core.errors import RateLimitedError
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.ingest.ivt.flags import Sender
from adloom.events.ingest.ivt.minute_counts import AddressCount, MinuteCounts
from adloom.runtime.http.fast.fast_routes import (
    FastAnswer,
    FastHandler,
    FastRequest,
    FastResult,
    FastRoute,
    make_problem_answer,
)


class RequestLimiter:
    """Refuses the requests of an address beyond a bound.

    Processes share their counts a moment later: a counter in Valkey would put a round trip before every ad. Internal
    addresses are not counted: behind them is a proxy that was not declared.
    """

    def __init__(
        self, counts: MinuteCounts, detector: TrafficDetector, read_second: Callable[[], float] = monotonic
    ) -> None:
        self._counts = counts
        self._detector = detector
        self._read_second = read_second
        self.refused = 0  # A plain counter, read by the metrics.

    def limit(self, routes: Sequence[FastRoute]) -> list[FastRoute]:
        """Put the limit before every route."""
        return [msgspec.structs.replace(route, handler=self._wrap(route.handler)) for route in routes]

    def _wrap(self, handler: FastHandler) -> FastHandler:
        """Wrap a handler; what it needs is at hand, because it is called for every request."""
        read_second, identify_sender, find = self._read_second, self._detector.identify_sender, self._find

        def check_and_handle(request: FastRequest) -> FastResult:
            sender = identify_sender(request)
            if sender.rate_key is not None:
                counts = sender.counts
                count = (counts is not None and counts.requests) or find(sender)
                if count.exceeds(second := read_second()):
                    self.refused += 1
                    return _build_refusal(count.find_wait(second))
            return handler(request)

        return check_and_handle

    def _find(self, sender: Sender) -> AddressCount:
        assert sender.rate_key is not None, "it is counted"
        count = self._counts.find(sender.rate_key)
        if sender.counts is not None:
            sender.counts.requests = count
        return count


@lru_cache(64)
def _build_refusal(seconds: int) -> FastAnswer:
    return make_problem_answer(
        RateLimitedError(
            "Too many requests from your address. Wait before you try again.", retry_after_seconds=seconds
        )
    )
