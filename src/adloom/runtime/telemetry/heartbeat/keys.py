"""Where vitals are in Valkey: one hash of processes, and one of counts for each hour and each minute."""

from datetime import UTC, datetime, timedelta
from typing import Final

PROCESSES: Final = "adloom:processes"
SETTINGS: Final = "adloom:processes:settings"
HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
KEPT: Final = {HOUR: timedelta(days=8), MINUTE: timedelta(hours=3)}
REQUESTS: Final = "requests"
FILLED: Final = "filled"


def floor_time(moment: datetime, step: timedelta) -> datetime:
    """Tell when the hour or the minute of a moment began."""
    seconds = int(step.total_seconds())
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, UTC)


def traffic_key(begins_at: datetime, step: timedelta) -> str:
    """Name the counts of an hour or a minute."""
    return f"adloom:traffic:{int(step.total_seconds())}:{int(begins_at.timestamp())}"
