"""What a process tells of itself."""

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from adloom.runtime.environment import Secret

# Who was not heard of for so long is gone, whatever it was killed by.
GONE_AFTER: Final = timedelta(seconds=10)
MASK: Final = "…"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a moment; what a kind of process does not know is None."""

    requests: int = 0  # Since it was started, as are those that were filled.
    filled: int = 0
    index_version: int | None = None
    p50_seconds: float | None = None
    p99_seconds: float | None = None
    pending: int | None = None
    spool_bytes: int | None = None


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A process, as it was a moment ago."""

    process: str
    kind: str
    host: str
    pid: int
    version: str
    started_at: datetime
    told_at: datetime
    requests_per_second: float
    reading: Reading

    @property
    def id(self) -> str:
        """The name by which it is told from all others."""
        return f"{self.process}@{self.host}:{self.pid}"

    def is_alive(self, *, now: datetime) -> bool:
        """Tell whether it was heard of lately."""
        return now - self.told_at < GONE_AFTER


class TrafficCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Requests for ads of all processes in an hour or a minute, and how many of them were filled."""

    begins_at: datetime
    requests: int
    filled: int


def mask_settings(settings: msgspec.Struct) -> dict[str, str]:
    """Write settings down for people: secrets, and addresses that carry some, are masked."""
    shown: dict[str, str] = {}
    for name, value in msgspec.structs.asdict(settings).items():
        if isinstance(value, msgspec.Struct):
            shown |= {f"{name}.{inner}": text for inner, text in mask_settings(value).items()}
        else:
            shown[name] = _mask(value)
    return shown


def _mask(value: Any) -> str:  # noqa: ANN401 - whatever a setting is
    if isinstance(value, Secret):
        return MASK if value else ""
    if isinstance(value, tuple | list):
        return ", ".join(_mask(one) for one in value)  # pyright: ignore[reportUnknownVariableType]  whatever it has
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)
