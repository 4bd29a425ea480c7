"""Processes that were frozen and replaced, told by their supervisors: the last ones, for a day."""

from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Final, cast

import msgspec

from adloom.runtime.telemetry.heartbeat import Moment
from adloom.runtime.valkey import Valkey

FROZEN: Final = "adloom:frozen"
KEPT_MAX: Final = 50
KEPT_FOR: Final = timedelta(days=1)


class FrozenProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that gave no sign of life for too long, and was replaced."""

    process: str
    host: str
    silent_seconds: float
    at: Moment


async def record_frozen(valkey: Valkey, frozen: FrozenProcess) -> None:
    pipe = valkey.pipeline(transaction=True)
    pipe.rpush(FROZEN, msgspec.json.encode(frozen).decode())
    pipe.ltrim(FROZEN, -KEPT_MAX, -1)
    pipe.expire(FROZEN, int(KEPT_FOR.total_seconds()))
    await pipe.execute()


async def read_frozen(valkey: Valkey, *, now: datetime) -> list[FrozenProcess]:
    """Return those of the last day, the newest first."""
    texts = cast("list[bytes]", await cast("Awaitable[object]", valkey.lrange(FROZEN, 0, -1)))
    found: list[FrozenProcess] = []
    for text in reversed(texts):
        try:
            one = msgspec.json.decode(text, type=FrozenProcess)
        except msgspec.DecodeError:  # Written by a version with another format.
            continue
        if now - one.at < KEPT_FOR:
            found.append(one)
    return found
