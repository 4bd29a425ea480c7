"""Days for tests on the real clock, which may run over midnight."""

from datetime import UTC, datetime, timedelta

NOON_HOUR = 12


def zone_at_noon() -> str:
    """Name a zone in which it is about noon: a budget is of one day, which is not to end in the middle of a test."""
    return f"Etc/GMT{datetime.now(UTC).hour - NOON_HOUR:+}"  # These names count from there to Greenwich.


def these_days() -> dict[str, str]:
    """Give the days in which a test has begun and goes on, as statistics are asked for them."""
    now = datetime.now(UTC)
    return {"from": (now - timedelta(days=1)).date().isoformat(), "to": now.date().isoformat()}
