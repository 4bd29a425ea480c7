"""How much of what Meta lets us ask is used up, as its headers say; pure."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")

BUSINESS_HEADER: Final = "x-business-use-case-usage"
ACCOUNT_HEADER: Final = "x-ad-account-usage"
INSIGHTS_HEADER: Final = "x-fb-ads-insights-throttle"
APP_HEADER: Final = "x-app-usage"
# From here on each request waits, the longer the less is left; from the second on nothing is asked any more.
SLOW_PERCENT: Final = 75.0
FULL_PERCENT: Final = 95.0
REST_MAX: Final = timedelta(seconds=20)
# Where Meta does not say how long: its windows are of five minutes to an hour.
RETRY_AFTER: Final = timedelta(minutes=5)
RETRY_AFTER_MAX: Final = timedelta(hours=24)
PERCENTAGES: Final = (
    *("call_count", "total_cputime", "total_time"),
    *("acc_id_util_pct", "app_id_util_pct"),
)


class MetaUsage(msgspec.Struct, frozen=True):
    """The share that is used up, in percent, and when there will be room again, where Meta says so."""

    percent: float = 0.0
    regain: timedelta = timedelta()

    @property
    def is_full(self) -> bool:
        """Whether asking more would be refused."""
        return self.percent >= FULL_PERCENT or self.regain > timedelta()

    @property
    def rest(self) -> timedelta:
        """How long the next request had better wait."""
        if self.percent < SLOW_PERCENT:
            return timedelta()
        return REST_MAX * min(1.0, (self.percent - SLOW_PERCENT) / (FULL_PERCENT - SLOW_PERCENT))

    @property
    def retry_after(self) -> timedelta:
        """When to come back."""
        return min(self.regain or RETRY_AFTER, RETRY_AFTER_MAX)


def parse_usage(headers: Mapping[str, str]) -> MetaUsage:
    """Read the headers of an answer; what cannot be read says nothing."""
    said = [
        _read(headers.get(name), dict[str, Any]) for name in (ACCOUNT_HEADER, INSIGHTS_HEADER, APP_HEADER)
    ]
    for uses in _read(headers.get(BUSINESS_HEADER), dict[str, list[dict[str, Any]]]).values():
        said += uses
    return MetaUsage(
        max((_read_figure(one, name) for one in said for name in PERCENTAGES), default=0.0),
        max(
            (timedelta(minutes=_read_figure(one, "estimated_time_to_regain_access")) for one in said),
            default=timedelta(),
        ),
    )


def _read(text: str | None, shape: type[dict[str, T]]) -> dict[str, T]:
    try:
        return msgspec.json.decode(text or "{}", type=shape)
    except msgspec.MsgspecError:
        return {}


def _read_figure(said: dict[str, Any], name: str) -> float:
    value = said.get(name, 0)
    return float(value) if isinstance(value, int | float) and value >= 0 else 0.0
