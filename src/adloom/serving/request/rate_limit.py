"""The rate limit of the public routes: requests a minute of a client address."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from adloom.core.errors import RateLimitedError
from adloom.runtime.http.fast.fast_routes import (
    FastAnswer,
    FastHandler,
    FastRequest,
    FastResult,
    FastRoute,
    problem_answer,
)
from adloom.serving.request.address_counts import MinuteCounts


class RequestLimiter:
    """Refuses the requests of an address beyond a bound.

    Each process counts for itself, so the limit holds per process, not for their sum: a counter in Valkey would put
    a round trip before every ad. Internal addresses are not counted: behind them is a proxy that was not declared.
    """

    def __init__(
        self,
        bound: int,
        find_rate_key: Callable[[FastRequest], bytes | None],
        read_second: Callable[[], float],
    ) -> None:
        self._counts = MinuteCounts(bound)
        self._find_key = find_rate_key
        self._read_second = read_second
        self.refused = 0  # A plain counter, read by the metrics.

    def limit(self, routes: Sequence[FastRoute]) -> list[FastRoute]:
        """Put the limit before every route."""
        return [msgspec.structs.replace(route, handler=self._wrap(route.handler)) for route in routes]

    def _wrap(self, handler: FastHandler) -> FastHandler:
        find_key, read_second, exceeds = self._find_key, self._read_second, self._counts.exceeds

        def check_and_handle(request: FastRequest) -> FastResult:
            key = find_key(request)
            if key is not None and exceeds(key, second := int(read_second())):
                self.refused += 1
                return _build_refusal(max(1, self._counts.ends_second - second))
            return handler(request)

        return check_and_handle


@lru_cache(64)
def _build_refusal(seconds: int) -> FastAnswer:
    return problem_answer(
        RateLimitedError(
            "Too many requests from your address. Wait before you try again.", retry_after_seconds=seconds
        )
    )
