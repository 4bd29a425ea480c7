"""A log-in of the console: how long it lasts."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.identity.model import User

IDLE_MAX: Final = timedelta(hours=12)
LIFETIME_MAX: Final = timedelta(days=7)
WELCOME_LIFETIME: Final = timedelta(hours=24)
# Who reads a page every second need not be written down every second.
SEEN_STEP: Final = timedelta(minutes=1)


class ConsoleSession(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has logged in with a browser."""

    user: User
    email: str
    seen_at: datetime
    expires_at: datetime

    def is_open(self, *, now: datetime) -> bool:
        """Tell whether it still counts: not idle for too long, not too old, not of somebody who was shut out."""
        return self.user.disabled_at is None and now < min(self.expires_at, self.seen_at + IDLE_MAX)

    def is_seen_late(self, *, now: datetime) -> bool:
        """Tell whether it should be written down that its owner was here."""
        return now - self.seen_at >= SEEN_STEP
