"""How long fast routes take: one call in so many is measured, so that measuring costs next to nothing."""

import asyncio
import time
from collections import deque
from typing import Final

import msgspec

from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastHandler,
    FastRequest,
    FastResult,
    FastRoute,
)

ONE_IN: Final = 16
SAMPLES_MAX: Final = 1_024


class ServeTimes:
    """The last measured calls; quantiles are computed on demand."""

    def __init__(self, *, one_in: int = ONE_IN) -> None:
        assert one_in >= 1, "one in one is all of them"
        self._one_in = one_in
        self._samples: deque[float] = deque(maxlen=SAMPLES_MAX)

    @property
    def samples(self) -> int:
        return len(self._samples)

    def quantile(self, share: float) -> float | None:
        """Return a quantile in seconds; None if nothing was measured yet."""
        ordered = sorted(self._samples.copy())
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None

    def measure(self, route: FastRoute) -> FastRoute:
        return msgspec.structs.replace(route, handler=self._measure_handler(route.handler))

    def _measure_handler(self, handler: FastHandler) -> FastHandler:
        calls_until_sample = 1
        note = self._samples.append
        now = time.perf_counter

        def handle_sampled(request: FastRequest) -> FastResult:
            nonlocal calls_until_sample
            calls_until_sample -= 1
            if calls_until_sample:
                return handler(request)
            calls_until_sample = self._one_in
            began = now()
            answer = handler(request)
            if isinstance(answer, asyncio.Future):
                answer.add_done_callback(lambda _: note(now() - began))
            elif isinstance(answer, DeferredAnswer):
                answer.add_callback(lambda _, __: note(now() - began))
            else:
                note(now() - began)
            return answer

        return handle_sampled
