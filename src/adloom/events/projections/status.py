"""The status of the event log: its size, and the position, owner and failures of each projection."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec

from adloom.events.log.event import parse_entry_id
from adloom.events.log.stream import STREAM, EventLogSize, Lag, ValkeyEventLog
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.events.projections.group import lock_key
from adloom.runtime.valkey import Valkey, raise_if_away

FAILING_SHOWN_MAX: Final = 1_000


class ProjectionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a projection is, and which worker owns it.

    `taken` are entries that the owner has read and not applied yet, `failing` those that were tried and failed,
    and `tries` is the largest number of tries of one of them.
    """

    name: str
    cursor: str
    lag: Lag
    owner: str | None
    taken: int
    failing: int
    tries: int
    dead: int


class LogStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The whole log; ids of entries begin with the millisecond in which they were appended."""

    size: EventLogSize
    oldest: str | None
    newest: str | None
    projections: tuple[ProjectionStatus, ...]


def read_entry_time(entry_id: str) -> datetime:
    return datetime.fromtimestamp(parse_entry_id(entry_id)[0] / 1000, UTC)


class LogStatusReader:
    """Reads the status; it changes nothing."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._event_log = ValkeyEventLog(valkey)
        self._letters = DeadLetterQueue(valkey)

    async def read(self, cursors: Mapping[str, str]) -> LogStatus:
        with raise_if_away():
            oldest, newest = await self._read_ends()
            dead = await self._letters.count_by_projection()
            groups = await self._read_groups()
            projections = [
                await self._read_projection(name, cursor, groups.get(name), dead.get(name, 0))
                for name, cursor in cursors.items()
            ]
            size = await self._event_log.measure_size()
        return LogStatus(size=size, oldest=oldest, newest=newest, projections=tuple(projections))

    async def _read_projection(
        self, name: str, cursor: str, group: Mapping[str, Any] | None, dead: int
    ) -> ProjectionStatus:
        lag = await self._event_log.measure_lag(name, cursor)
        taken = failing = tries = 0
        if group is not None:
            taken = max(0, lag.entries - (group["lag"] if group["lag"] is not None else lag.entries))
            failing = group["pending"]
            tries = await self._count_tries(name) if failing else 0
        holder = cast("bytes | None", await self._valkey.get(lock_key(name)))
        return ProjectionStatus(
            name=name,
            cursor=cursor,
            lag=lag,
            owner=holder.decode().partition(" ")[0] if holder else None,
            taken=taken,
            failing=failing,
            tries=tries,
            dead=dead,
        )

    async def _count_tries(self, name: str) -> int:
        # The delivery count is one ahead: the next try is counted before it is made.
        pending = cast(
            "list[Mapping[str, Any]]",
            await self._valkey.xpending_range(STREAM, name, "-", "+", FAILING_SHOWN_MAX),
        )
        return max((one["times_delivered"] - 1 for one in pending), default=0)

    async def _read_groups(self) -> dict[str, Mapping[str, Any]]:
        if not await self._valkey.exists(STREAM):
            return {}
        # The stubs know every protocol version and decoding.
        groups = cast("list[Mapping[str, Any]]", await self._valkey.xinfo_groups(STREAM))
        return {group["name"].decode(): group for group in groups}

    async def _read_ends(self) -> tuple[str | None, str | None]:
        oldest = cast("list[tuple[bytes, object]]", await self._valkey.xrange(STREAM, count=1))
        newest = cast("list[tuple[bytes, object]]", await self._valkey.xrevrange(STREAM, count=1))
        return (oldest[0][0].decode(), newest[0][0].decode()) if oldest and newest else (None, None)
