"""Which delivery processes are alive: pure.

Moments are seconds of a clock that never goes back. A process that was not heard of for too long is gone;
where we could not have heard anybody, nobody's silence counts.
"""

from collections.abc import Iterable
from typing import Final

from adloom.budgets.transport.wire import SESSION_SECONDS_MAX

REMEMBERED_MAX: Final = (
    100_000  # Sessions that are over; an older one that speaks again holds no lease any more.
)


class DeliverySessions:
    """The sessions that are open, and those that are over."""

    def __init__(self, *, silence_max: float = SESSION_SECONDS_MAX) -> None:
        self._silence_max = silence_max
        self._heard_at: dict[int, float] = {}  # Who was heard of last is last.
        self._over: dict[int, None] = {}

    def __len__(self) -> int:
        """Tell how many are open."""
        return len(self._heard_at)

    def is_over(self, session: int) -> bool:
        """Tell whether nobody may speak for a session any more."""
        return session in self._over

    def record_heard(self, session: int, *, at: float) -> bool:
        """Note a sign of life, the first of which opens a session; tell whether it is open."""
        if session in self._over:
            return False
        self._heard_at.pop(session, None)
        self._heard_at[session] = at
        return True

    def restore(self, sessions: Iterable[int], over: Iterable[int], *, at: float) -> None:
        """Take over from whoever kept them before; all have time to be heard of."""
        self._heard_at.clear()
        self._over = dict.fromkeys(over)
        for session in sessions:
            self.record_heard(session, at=at)

    def end(self, session: int) -> None:
        """Let a session be over, for good."""
        self._heard_at.pop(session, None)
        self._over.pop(session, None)
        self._over[session] = None
        if len(self._over) > REMEMBERED_MAX:
            del self._over[next(iter(self._over))]

    def reset_silence(self, *, at: float) -> None:
        """Let everybody's silence begin now: before, nobody could be heard."""
        for session in self._heard_at:
            self._heard_at[session] = at

    def find_silent(self, *, at: float) -> list[int]:
        """Tell who was not heard of for too long."""
        silent: list[int] = []
        for session, heard_at in self._heard_at.items():
            # Added up as `next_at` does, so that who was waited for is silent then.
            if at < heard_at + self._silence_max:
                break
            silent.append(session)
        return silent

    def next_silence_at(self) -> float | None:
        """Tell when somebody will have been silent for too long, if nobody is heard until then."""
        first = next(iter(self._heard_at.values()), None)
        return None if first is None else first + self._silence_max
