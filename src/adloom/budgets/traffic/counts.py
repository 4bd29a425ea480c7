"""Counts of sites' traffic in Valkey: a hash for each day of a site, with requests, answers and offers left out by hour."""

from collections.abc import Awaitable, Mapping
from typing import Final, cast

import msgspec

from adloom.budgets.traffic.site_day import SiteDay
from adloom.runtime.valkey import Valkey
from adloom.schedule.traffic_shape import HOURS

DAYS_KEPT: Final = 2
INSTALLATION: Final = 0  # In place of a site: all of them.
KINDS: Final = ("requests", "served", "throttled")


class HourCounts(msgspec.Struct):
    """What came in an hour, how much of it was filled, and how many offers the pace left out."""

    requests: int = 0
    served: int = 0
    throttled: int = 0


def day_key(site_key: int, day: SiteDay) -> str:
    return f"adloom:traffic:site:{site_key}:{day.starts}"


async def add_counts(valkey: Valkey, counts: Mapping[int, tuple[SiteDay, int, HourCounts]]) -> None:
    """Add counts by site to an hour of its day."""
    pipe = valkey.pipeline(transaction=False)
    for site_key, (day, hour, added) in counts.items():
        key = day_key(site_key, day)
        for kind in KINDS:
            if amount := getattr(added, kind):
                pipe.hincrby(key, f"{hour}:{kind}", amount)
        pipe.expire(key, max(3_600, DAYS_KEPT * day.seconds))
    await pipe.execute()


async def read_counts(valkey: Valkey, site_key: int, day: SiteDay) -> list[HourCounts]:
    """Return the counts of a day, by hour."""
    found = cast(
        "Mapping[bytes, bytes]", await cast("Awaitable[object]", valkey.hgetall(day_key(site_key, day)))
    )
    hours = [HourCounts() for _ in range(HOURS)]
    for field, value in found.items():
        hour, _, kind = field.decode().partition(":")
        setattr(hours[int(hour)], kind, int(value))
    return hours
