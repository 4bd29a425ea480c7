"""Shares counts by address with other processes, in Valkey: once a second, and no request or event waits for it.

    adloom:counted:<what>:<keyed hash>      hash of a process -> what it counted, of a pair in its hour
                                            or of an address in its minute

Each process writes all that it has counted, so what is shared twice counts once. Addresses are not stored: a pair is
there as a keyed hash for two hours, an address for a minute at most.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from secrets import token_bytes
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

import structlog

from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.events.ingest.ivt.pair_counts import HOUR_SECONDS, PairCounts
from adloom.runtime.loops import pause_until_next
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

SHARE_SECONDS: Final = 1.0
ANSWER_SECONDS_MAX: Final = 5.0
AT_ONCE: Final = 1_000
MILLIS: Final = 1_000
_HASH_BYTES: Final = 12
_KEPT_MILLIS: Final = 2 * HOUR_SECONDS * MILLIS

# In one step: a count without an end would stay for ever. For each key a field, what it counts, and its milliseconds.
_TELL_SCRIPT: Final = """
local answers = {}
for i, key in ipairs(KEYS) do
    redis.call('HSET', key, ARGV[3 * i - 2], ARGV[3 * i - 1])
    redis.call('PEXPIRE', key, ARGV[3 * i], 'NX')
    local total = 0
    for _, counted in ipairs(redis.call('HVALS', key)) do total = total + counted end
    answers[2 * i - 1], answers[2 * i] = total, redis.call('PTTL', key)
end
return answers
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_pack_moment: Final = Struct(">d").pack

# Counts by minute, and the clock that they are counted by.
SharedMinutes: TypeAlias = tuple[MinuteCounts, Callable[[], float]]


class SharedCount(NamedTuple):
    """All that a process has counted of something since it began, and how long that is of interest."""

    key: str
    field: bytes
    events: int
    millis: int


class CountSharer:
    """Tells what this process has counted, and learns what others have. While Valkey is away each counts alone."""

    def __init__(
        self,
        valkey: Valkey,
        pairs: Mapping[str, PairCounts],
        minutes: Mapping[str, SharedMinutes] | None = None,
        *,
        secret: str,
    ) -> None:
        self._valkey = valkey
        self._pairs = pairs
        self._minutes = minutes or {}
        key = blake2b(secret.encode(), digest_size=32, person=b"adloom-addresses").digest()
        self._start = blake2b(key=key, digest_size=_HASH_BYTES)
        self._is_away = False
        self._process = token_bytes(_HASH_BYTES)
        self._tell_script = valkey.register_script(_TELL_SCRIPT)

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await pause_until_next(SHARE_SECONDS, stop)
            await self.share()

    async def share(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                for name, counts in self._pairs.items():
                    await self._share_pairs(name, counts)
                for name, (minutes, read_second) in self._minutes.items():
                    await self._share_minutes(name, minutes, read_second)
        except (*VALKEY_AWAY, TimeoutError) as error:
            if not self._is_away:
                log.warning("traffic_counts_not_shared", reason=repr(error))
            self._is_away = True
        else:
            self._is_away = False

    async def _share_pairs(self, name: str, counts: PairCounts) -> None:
        begun, pending = counts.begun, counts.list_pending()
        field, hour = self._process + begun.to_bytes(8, "big"), counts.hour.to_bytes(8, "big")
        for start in range(0, len(pending), AT_ONCE):
            told = pending[start : start + AT_ONCE]
            answers = await self._send(
                SharedCount(
                    self._build_key(name, hour, campaign.to_bytes(17, "big", signed=True), address),
                    field,
                    events,
                    _KEPT_MILLIS,
                )
                for (address, campaign), events in told
            )
            for (pair, events), (total, _) in zip(told, answers, strict=True):
                counts.note_shared(begun, pair, events, total)

    async def _share_minutes(self, name: str, counts: MinuteCounts, read_second: Callable[[], float]) -> None:
        pending = counts.list_pending(read_second())
        for start in range(0, len(pending), AT_ONCE):
            told = pending[start : start + AT_ONCE]
            answers = await self._send(
                SharedCount(
                    self._build_key(name, one.key),
                    self._process + _pack_moment(one.begins_at),
                    one.requests,
                    max(1, int(one.seconds_left * MILLIS)),
                )
                for one in told
            )
            second = read_second()
            for one, (total, left) in zip(told, answers, strict=True):
                if left > 0:
                    one.address.note_shared(one, total, second + left / MILLIS)

    async def _send(self, counts: Iterable[SharedCount]) -> list[tuple[int, int]]:
        """Tell what was counted, and return what all processes have counted, and for how many milliseconds it stays."""
        keys: list[str] = []
        told: list[bytes | int] = []
        for one in counts:
            keys.append(one.key)
            told += (one.field, one.events, one.millis)
        answers = await self._tell_script(keys, told)
        return list(zip(answers[::2], answers[1::2], strict=True))

    def _build_key(self, name: str, *parts: bytes) -> str:
        mac = self._start.copy()
        for part in parts:
            mac.update(part)
        return f"adloom:counted:{name}:{mac.hexdigest()}"
