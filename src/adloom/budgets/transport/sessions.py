"""Which delivery processes are alive.

Times are seconds of a monotonic clock. A process that was silent for too long is gone. Time in which we
could not receive anything does not count.
"""

# pure

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from adloom.budgets.transport.wire import SESSION_SECONDS_MAX

# Sessions that are over; an older one that sends again holds no lease any more.
REMEMBERED_MAX: Final = 100_000


class DeliverySessions:
    """Sessions that are open, and sessions that are over."""

    def __init__(self, *, silence_max: float = SESSION_SECONDS_MAX) -> None:
        self._silence_max = silence_max
        self._heard_at: dict[int, float] = {}  # In order of time.
        self._over: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._heard_at)

    def __iter__(self) -> Iterator[int]:
        return iter(self._heard_at)

    def is_over(self, session: int) -> bool:
        return session in self._over

    def record_seen(self, session: int, *, at: float) -> bool:
        """Record a sign of life, which may open the session; return whether it is open."""
        if session in self._over:
            return False
        self._heard_at.pop(session, None)
        self._heard_at[session] = at
        return True

    def restore(self, sessions: Iterable[int], over: Iterable[int], *, at: float) -> None:
        """Take over known sessions; each gets the full time for its next heartbeat."""
        self._heard_at.clear()
        self._over = OrderedDict.fromkeys(over)
        for session in sessions:
            self.record_seen(session, at=at)

    def end(self, session: int) -> None:
        self._heard_at.pop(session, None)
        self._over.pop(session, None)
        self._over[session] = None
        if len(self._over) > REMEMBERED_MAX:
            self._over.popitem(last=False)

    def reset_silence(self, *, at: float) -> None:
        """Restart the silence of all sessions: until now we could not receive their heartbeats."""
        for session in self._heard_at:
            self._heard_at[session] = at

    def find_silent(self, *, at: float) -> list[int]:
        silent: list[int] = []
        for session, heard_at in self._heard_at.items():
            # The same sum as in `find_next_silence`, so that rounding cannot differ.
            if at < heard_at + self._silence_max:
                break
            silent.append(session)
        return silent

    def find_next_silence(self) -> float | None:
        """When a session will have been silent for too long, if no heartbeat comes until then."""
        first = next(iter(self._heard_at.values()), None)
        return None if first is None else first + self._silence_max
