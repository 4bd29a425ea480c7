"""How many simulated visitors come at which hour: quiet at night, busy in the evening."""

# pure

import math
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from adloom.core.random import Chance

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


def busyness(moment: datetime) -> float:
    """Return the load of a moment relative to the mean of a working day, interpolated between hours."""
    local = moment.astimezone(ZONE)
    share = local.minute / 60 + local.second / 3600
    this_hour, next_hour = BY_HOUR[local.hour], BY_HOUR[(local.hour + 1) % len(BY_HOUR)]
    of_day = {SUNDAY - 1: BY_SATURDAY, SUNDAY: BY_SUNDAY}.get(local.weekday(), 1.0)
    return (this_hour + (next_hour - this_hour) * share) * of_day


def visits_per_second(moment: datetime, *, loaded_at: datetime) -> float:
    """Return the visit rate: by the hour, and much higher just after the load."""
    usual = VISITS_PER_SECOND * busyness(moment)
    age = moment - loaded_at
    if age < timedelta():
        return usual
    return max(usual, BRISK_VISITS_PER_SECOND * 0.5 ** max(0.0, (age - BRISK) / BRISK))


def seconds_to_next(rate: float, chance: Chance) -> float:
    """Draw the time until the next visit; visits are independent."""
    return min(WAIT_SECONDS_MAX, -math.log(1.0 - chance.random()) / rate)
