"""When a language model is not asked: too many requests, or too many failures lately. Time is passed in."""

# pure

from typing import Final

FAILURES_MAX: Final = 5
OPEN_SECONDS: Final = 30.0
BURST: Final = 5


class ModelRequestBucket:
    """So many requests a minute, and a few at once."""

    def __init__(self, per_minute: int, *, burst: int = BURST) -> None:
        self._per_second = per_minute / 60
        self._size = float(max(burst, 2))
        self._tokens = self._size
        self._at: float | None = None

    def take(self, count: int, now: float) -> bool:
        if self._at is not None:
            self._tokens = min(self._size, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < count:
            return False
        self._tokens -= count
        return True


class CircuitBreaker:
    """Opens after 5 failures in a row; after 30 seconds it lets one request try."""

    def __init__(self) -> None:
        self._failures = 0
        self._open_until = 0.0

    def may_ask(self, now: float) -> bool:
        return self._failures < FAILURES_MAX or now >= self._open_until

    def note(self, now: float, *, is_success: bool) -> None:
        if is_success:
            self._failures = 0
            return
        self._failures += 1
        if self._failures >= FAILURES_MAX:
            self._open_until = now + OPEN_SECONDS
