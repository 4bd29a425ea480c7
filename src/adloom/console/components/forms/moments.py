"""Times in fields: as somebody types them in a time zone, and as the API wants them."""

from datetime import UTC, datetime
from typing import Final

from adloom.console.components.format import format_moment as parse_moment
from adloom.schedule.schedule import find_zone

MINUTES: Final = "%Y-%m-%dT%H:%M"


def convert_to_local(given: str | None, zone: str | None) -> str:
    at = parse_moment(given)
    return "" if at is None else at.astimezone(find_zone(zone or "UTC") or UTC).strftime(MINUTES)


def convert_to_utc(value: str, zone: str | None) -> str | None:
    if not value:
        return None
    at = datetime.fromisoformat(value).replace(tzinfo=find_zone(zone or "UTC") or UTC)
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
