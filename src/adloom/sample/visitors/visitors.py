"""The simulated visitors: a few hundred, each with a device, a country and a language, and how many come at which hour."""

# pure

import functools
import hashlib
import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.random import Chance
from adloom.sample.content.catalog import read_data

T = TypeVar("T")

READERS_COUNT: Final = 400
NEW_SHARE: Final = 0.3  # Share of visits by a visitor that the page has not seen before.
# Relative to the mean, hour by hour; the sum is 24.
BY_HOUR: Final = (
    *(0.35, 0.22, 0.16, 0.14, 0.18, 0.34, 0.66, 1.02, 1.18, 1.10, 1.04, 1.10),
    *(1.32, 1.24, 1.06, 1.02, 1.08, 1.44, 1.64, 1.92, 2.12, 1.94, 1.10, 0.63),
)
SUNDAY: Final = 6
BY_SATURDAY: Final = 1.15
BY_SUNDAY: Final = 1.3
ZONE: Final = ZoneInfo("Europe/London")
# A few thousand page views a day: enough for every chart, and a database that stays small.
VISITS_PER_SECOND: Final = 0.15
# More visits right after the load, so that figures appear soon; the surplus halves every two minutes.
BRISK: Final = timedelta(minutes=2)
BRISK_VISITS_PER_SECOND: Final = 3.0
WAIT_SECONDS_MAX: Final = 60.0


class _Shares(msgspec.Struct, frozen=True):
    devices: tuple[tuple[str, float], ...]  # User agents.
    countries: tuple[tuple[tuple[str, str], float], ...]  # Each with its language.


_SHARES: Final = msgspec.json.decode(read_data("visitors.json"), type=_Shares)
DEVICES: Final = _SHARES.devices
COUNTRIES: Final = _SHARES.countries


class SampleVisitor(msgspec.Struct, frozen=True, kw_only=True):
    """A visitor, and what their browser sends."""

    id: UUID
    user_agent: str
    country: str
    language: str
    is_new: bool

    def build_headers(self) -> dict[str, str]:
        """Return a browser's headers, with what a proxy in front of us would add."""
        said = {
            "User-Agent": self.user_agent,
            "Accept-Language": f"{self.language},{self.language[:2]};q=0.9",
            "x-country-code": self.country,
        }
        return said if self.is_new else {**said, "x-session-id": str(self.id)}


def pick_visitor(chance: Chance) -> SampleVisitor:
    """Pick a visitor; the same number is always the same visitor."""
    return _make_visitor(int(chance.random() * READERS_COUNT), is_new=chance.random() < NEW_SHARE)


@functools.cache
def _make_visitor(number: int, *, is_new: bool) -> SampleVisitor:
    digest = hashlib.sha256(f"a reader of the sample, {number}".encode()).digest()
    country, language = pick(COUNTRIES, digest[16] / 256)
    return SampleVisitor(
        id=UUID(bytes=digest[:16], version=4),
        user_agent=pick(DEVICES, digest[17] / 256),
        country=country,
        language=language,
        is_new=is_new,
    )


def pick(among: Sequence[tuple[T, float]], drawn: float) -> T:
    """Pick by weight, with a number drawn from 0 to 1."""
    rest = drawn * sum(weight for _, weight in among)
    for thing, weight in among:
        rest -= weight
        if rest < 0:
            return thing
    return among[-1][0]


def compute_busyness(moment: datetime) -> float:
    """Return the load of a moment relative to the mean of a working day, interpolated between hours."""
    local = moment.astimezone(ZONE)
    share = local.minute / 60 + local.second / 3600
    this_hour, next_hour = BY_HOUR[local.hour], BY_HOUR[(local.hour + 1) % len(BY_HOUR)]
    of_day = {SUNDAY - 1: BY_SATURDAY, SUNDAY: BY_SUNDAY}.get(local.weekday(), 1.0)
    return (this_hour + (next_hour - this_hour) * share) * of_day


def compute_visits_per_second(moment: datetime, *, loaded_at: datetime) -> float:
    """Return the visit rate: by the hour, and much higher just after the load."""
    usual = VISITS_PER_SECOND * compute_busyness(moment)
    age = moment - loaded_at
    if age < timedelta():
        return usual
    return max(usual, BRISK_VISITS_PER_SECOND * 0.5 ** max(0.0, (age - BRISK) / BRISK))


def draw_seconds_to_next(rate: float, chance: Chance) -> float:
    """Draw the time until the next visit; visits are independent."""
    return min(WAIT_SECONDS_MAX, -math.log(1.0 - chance.random()) / rate)
