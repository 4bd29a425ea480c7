"""How a form has what the API has otherwise: objects within an object, times in a time zone, and the zones to choose from."""

import functools
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from adloom.console.components.format import format_moment as parse_moment
from adloom.schedule.schedule import find_zone


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Add the fields of objects within, each called by both names: `pacing.warmup`."""
    flat = dict(values)
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{part}": one for part, one in value.items()}  # pyright: ignore[reportUnknownVariableType]  whatever it has
    return flat


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Make objects of the fields that are called by two names."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        outer, _, inner = name.partition(".")
        if inner:
            nested.setdefault(outer, {})[inner] = value
        else:
            nested[name] = value
    return nested


MINUTES: Final = "%Y-%m-%dT%H:%M"


def convert_to_local(given: str | None, zone: str | None) -> str:
    at = parse_moment(given)
    return "" if at is None else at.astimezone(find_zone(zone or "UTC") or UTC).strftime(MINUTES)


def convert_to_utc(value: str, zone: str | None) -> str | None:
    if not value:
        return None
    at = datetime.fromisoformat(value).replace(tzinfo=find_zone(zone or "UTC") or UTC)
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


# Where most people live comes first: "Ber" finds Europe/Berlin before Atlantic/Bermuda.
REGIONS: Final = (
    "Europe",
    "America",
    "Asia",
    "Africa",
    "Australia",
    "Pacific",
    "Atlantic",
    "Indian",
    "Antarctica",
    "Arctic",
)


@functools.cache
def list_zones() -> dict[str, str]:
    """Return the zones of regions with their labels, UTC first: a label has spaces where a name has underscores."""
    found = [one for one in zoneinfo.available_timezones() if one.partition("/")[0] in REGIONS]
    return {"UTC": "UTC"} | {one: _write(one) for one in sorted(found, key=_place)}


def offer_zone(chosen: str | None) -> dict[str, str]:
    """Return the zones with the one that is chosen already, which may be another: an old name such as `US/Pacific`."""
    zones = list_zones()
    return zones if not chosen or chosen in zones else {chosen: _write(chosen), **zones}


def _write(zone: str) -> str:
    return zone.replace("_", " ")


def _place(zone: str) -> tuple[int, str]:
    return REGIONS.index(zone.partition("/")[0]), zone
