"""Log lines that may come a thousand times a second: one of them a second, with how many there were."""

from collections.abc import Callable
from typing import Any, Final

import structlog

EVERY_SECONDS: Final = 1.0


class RepeatedLine:
    """Writes a line at most once a second; what was left out is counted in the next one, as `times`."""

    def __init__(self, log: structlog.stdlib.BoundLogger, event: str, *, now: Callable[[], float]) -> None:
        self._log = log
        self._event = event
        self._now = now
        self._next_at: float | None = None
        self._times = 0

    def __call__(self, **fields: Any) -> None:  # noqa: ANN401 - whatever a line has
        self._times += 1
        now = self._now()
        if self._next_at is not None and now < self._next_at:
            return
        self._next_at = now + EVERY_SECONDS
        times, self._times = self._times, 0
        self._log.warning(self._event, times=times, **fields)
