"""A log-in of the console, and how long it lasts."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.identity.model import User

IDLE_MAX: Final = timedelta(hours=12)
LIFETIME_MAX: Final = timedelta(days=7)
WELCOME_LIFETIME: Final = timedelta(hours=24)
# A user who loads a page every second is not written down every second.
SEEN_STEP: Final = timedelta(minutes=1)


class ConsoleSession(msgspec.Struct, frozen=True, kw_only=True):
    """A user who has logged in with a browser."""

    user: User
    email: str
    seen_at: datetime
    expires_at: datetime

    def is_open(self, *, now: datetime) -> bool:
        """Return whether it is valid: neither idle for too long, nor too old, nor of a disabled user."""
        return self.user.disabled_at is None and now < min(self.expires_at, self.seen_at + IDLE_MAX)

    def is_seen_late(self, *, now: datetime) -> bool:
        """Return whether its last activity is old enough to be written again."""
        return now - self.seen_at >= SEEN_STEP
