"""The time zones that people choose from, as they look for them."""

import functools
import zoneinfo
from typing import Final

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
