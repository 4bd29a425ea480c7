"""Reading how all processes are doing."""

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, cast

import msgspec

from adloom.runtime.telemetry.heartbeat.keys import (
    FILLED,
    PROCESSES,
    REQUESTS,
    SETTINGS,
    floor_time,
    traffic_key,
)
from adloom.runtime.telemetry.heartbeat.model import Heartbeat, TrafficCounts
from adloom.runtime.valkey import Valkey

FORGOTTEN_AFTER: Final = timedelta(days=1)

_decode = msgspec.json.Decoder(Heartbeat).decode
_Hash = Mapping[bytes, bytes]


class HeartbeatReader:
    """Reads what processes have told."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def processes(self, *, now: datetime) -> Sequence[Heartbeat]:
        """Tell the processes that were heard of lately, in the order of their names; long gone ones are forgotten."""
        told = cast("_Hash", await cast("Awaitable[object]", self._valkey.hgetall(PROCESSES)))
        alive: list[Heartbeat] = []
        for name, text in told.items():
            vitals = _readable(text)
            if vitals is not None and vitals.is_alive(now=now):
                alive.append(vitals)
            elif vitals is None or now - vitals.told_at > FORGOTTEN_AFTER:
                await cast("Awaitable[object]", self._valkey.hdel(PROCESSES, name.decode()))
                await cast("Awaitable[object]", self._valkey.hdel(SETTINGS, name.decode()))
        return sorted(alive, key=lambda one: (one.process, one.host, one.pid))

    async def settings(self) -> Mapping[str, Mapping[str, str]]:
        """Tell the settings that each process runs with."""
        told = cast("_Hash", await cast("Awaitable[object]", self._valkey.hgetall(SETTINGS)))
        return {name.decode(): msgspec.json.decode(text, type=dict[str, str]) for name, text in told.items()}

    async def traffic(self, step: timedelta, *, count: int, now: datetime) -> Sequence[TrafficCounts]:
        """Tell the requests of the last hours or minutes, the present one last."""
        last = floor_time(now, step)
        begins = [last - step * back for back in range(count - 1, -1, -1)]
        pipe = self._valkey.pipeline(transaction=False)
        for at in begins:
            pipe.hmget(traffic_key(at, step), [REQUESTS, FILLED])
        answers = cast("list[list[bytes | None]]", await pipe.execute())
        return [
            TrafficCounts(begins_at=at, requests=int(requests or 0), filled=int(filled or 0))
            for at, (requests, filled) in zip(begins, answers, strict=True)
        ]


def _readable(text: bytes) -> Heartbeat | None:
    try:
        return _decode(text)
    except msgspec.DecodeError:  # Of another version, that tells it otherwise.
        return None
