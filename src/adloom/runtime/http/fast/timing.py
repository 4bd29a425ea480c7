"""How long fast routes take: one call in so many is measured, so that measuring costs next to nothing."""

import asyncio
import time
from bisect import bisect_left
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
# Upper bounds of a histogram, in seconds: an answer from memory takes 20 µs, one that waits for Valkey a millisecond.
SECONDS_BOUNDS: Final = (
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
)  # fmt: skip


class ServeTimes:
    """The measured calls: all of them in a histogram, and the last ones for quantiles on demand."""

    def __init__(self, *, one_in: int = ONE_IN) -> None:
        assert one_in >= 1, "one in one is all of them"
        self._one_in = one_in
        self._samples: deque[float] = deque(maxlen=SAMPLES_MAX)
        self.within = [0] * (len(SECONDS_BOUNDS) + 1)  # The last for what took longer than all bounds.
        self.seconds_sum = 0.0

    @property
    def samples(self) -> int:
        return len(self._samples)

    def compute_quantile(self, share: float) -> float | None:
        """Return a quantile in seconds; None if nothing was measured yet."""
        ordered = sorted(self._samples.copy())
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None

    def note(self, seconds: float) -> None:
        self._samples.append(seconds)
        self.within[bisect_left(SECONDS_BOUNDS, seconds)] += 1
        self.seconds_sum += seconds

    def measure(self, route: FastRoute) -> FastRoute:
        return msgspec.structs.replace(route, handler=self._measure_handler(route.handler))

    def _measure_handler(self, handler: FastHandler) -> FastHandler:
        calls_until_sample = 1
        note = self.note
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
