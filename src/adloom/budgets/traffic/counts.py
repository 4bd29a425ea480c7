"""Counts of traffic in Valkey.

A site has a hash for each of its days, with requests, answers and offers left out by hour. All placements together have
one for each day in UTC, with the requests of each.
"""

from collections import Counter
from collections.abc import Awaitable, Mapping
from datetime import date, timedelta
from typing import Final, cast

import msgspec

from adloom.budgets.traffic.site_day import DAY_SECONDS, SiteDay
from adloom.runtime.valkey import Valkey
from adloom.schedule.traffic_shape import HOURS

DAYS_KEPT: Final = 2
PLACEMENT_DAYS: Final = 7
INSTALLATION: Final = 0  # In place of a site: all of them.
KINDS: Final = ("requests", "served", "throttled")


class HourCounts(msgspec.Struct):
    """What came in an hour, how much of it was filled, and how many offers the pace left out."""

    requests: int = 0
    served: int = 0
    throttled: int = 0


def make_day_key(site_key: int, day: SiteDay) -> str:
    return f"adloom:traffic:site:{site_key}:{day.starts}"


class PlacementRequests(msgspec.Struct, frozen=True):
    """How often placements were asked for in the last days; `days` are those since the first that was counted."""

    days: int
    by_key: Mapping[int, int]


def make_placement_day_key(day: date) -> str:
    return f"adloom:traffic:placements:{day.isoformat()}"


async def add_counts(
    valkey: Valkey,
    counts: Mapping[int, tuple[SiteDay, int, HourCounts]],
    placements: tuple[date, Mapping[int, int]] | None = None,
) -> None:
    """Add counts by site to an hour of its day, and requests by placement to a day."""
    pipe = valkey.pipeline(transaction=False)
    for site_key, (day, hour, added) in counts.items():
        key = make_day_key(site_key, day)
        for kind in KINDS:
            if amount := getattr(added, kind):
                pipe.hincrby(key, f"{hour}:{kind}", amount)
        pipe.expire(key, max(3_600, DAYS_KEPT * day.seconds))
    if placements is not None:
        key = make_placement_day_key(placements[0])
        for placement_key, requests in placements[1].items():
            pipe.hincrby(key, str(placement_key), requests)
        pipe.expire(key, (PLACEMENT_DAYS + 1) * DAY_SECONDS)
    await pipe.execute()


async def read_counts(valkey: Valkey, site_key: int, day: SiteDay) -> list[HourCounts]:
    """Return the counts of a day, by hour."""
    found = cast(
        "Mapping[bytes, bytes]", await cast("Awaitable[object]", valkey.hgetall(make_day_key(site_key, day)))
    )
    hours = [HourCounts() for _ in range(HOURS)]
    for field, value in found.items():
        hour, _, kind = field.decode().partition(":")
        setattr(hours[int(hour)], kind, int(value))
    return hours


async def read_placement_requests(valkey: Valkey, today: date) -> PlacementRequests:
    """Return how often each placement was asked for in the last days, with today."""
    pipe = valkey.pipeline(transaction=False)
    for age in range(PLACEMENT_DAYS):
        pipe.hgetall(make_placement_day_key(today - timedelta(days=age)))
    found = cast("list[Mapping[bytes, bytes]]", await pipe.execute())
    by_key = Counter[int]()
    for counts in found:
        for key, requests in counts.items():
            by_key[int(key)] += int(requests)
    return PlacementRequests(max((age + 1 for age, counts in enumerate(found) if counts), default=1), by_key)
