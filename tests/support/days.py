"""Days for tests on the real clock, which may run over midnight."""

from datetime import UTC, datetime, timedelta

NOON_HOUR = 12


def zone_at_noon() -> str:
    """Return a zone in which it is about noon, so that a budget's day does not end during a test."""
    return f"Etc/GMT{datetime.now(UTC).hour - NOON_HOUR:+}"  # The signs of these names are inverted.


def these_days() -> dict[str, str]:
    """Return the range of days in which the test runs, as query parameters of the statistics."""
    now = datetime.now(UTC)
    return {"from": (now - timedelta(days=1)).date().isoformat(), "to": now.date().isoformat()}
