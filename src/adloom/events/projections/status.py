"""The status of the event log: its size, and the position, owner and failures of each projection."""

from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from adloom.events.log.event import parse_entry_id
from adloom.events.log.stream import STREAM, EventLogSize, Lag, ValkeyEventLog, unpack_row
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.events.projections.group import lock_key, tries_key
from adloom.runtime.valkey import Valkey, raise_if_away


class ProjectionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a projection is, and which worker owns it.

    `taken` are entries that the owner has read and not applied yet, `failing` are events that were tried and failed, and
    `tries` is the largest number of tries of one of them.
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
        taken = 0
        if group is not None:
            taken = max(0, lag.entries - (group["lag"] if group["lag"] is not None else lag.entries))
        tries = await self._read_tries(name, cursor)
        holder = cast("bytes | None", await self._valkey.get(lock_key(name)))
        return ProjectionStatus(
            name=name,
            cursor=cursor,
            lag=lag,
            owner=holder.decode().partition(" ")[0] if holder else None,
            taken=taken,
            failing=len(tries),
            tries=max(tries, default=0),
            dead=dead,
        )

    async def _read_tries(self, name: str, cursor: str) -> list[int]:
        # The stubs know every protocol version and decoding.
        tries = await cast("Awaitable[dict[bytes, bytes]]", self._valkey.hgetall(tries_key(name)))
        applied = parse_entry_id(cursor)
        return [
            int(count) for entry_id, count in tries.items() if parse_entry_id(entry_id.decode()) > applied
        ]

    async def _read_groups(self) -> dict[str, Mapping[str, Any]]:
        if not await self._valkey.exists(STREAM):
            return {}
        # The stubs know every protocol version and decoding.
        groups = cast("list[Mapping[str, Any]]", await self._valkey.xinfo_groups(STREAM))
        return {group["name"].decode(): group for group in groups}

    async def _read_ends(self) -> tuple[str | None, str | None]:
        oldest = cast("list[tuple[bytes, dict[bytes, bytes]]]", await self._valkey.xrange(STREAM, count=1))
        newest = cast("list[tuple[bytes, object]]", await self._valkey.xrevrange(STREAM, count=1))
        return (unpack_row(*oldest[0])[0].id, newest[0][0].decode()) if oldest and newest else (None, None)
