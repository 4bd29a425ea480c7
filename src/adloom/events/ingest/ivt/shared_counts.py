"""Shares counts by address with other processes, in Valkey: once a second, and no request or event waits for it.

    adloom:traffic:<what>:<hour>            hash of a pair -> events of the hour, by all processes
    adloom:minute:<what>:<keyed hash>       requests of an address in its minute, by all processes

Addresses are not stored: a pair is there as a keyed hash for two hours, an address for a minute at most.
"""

import asyncio
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final, TypeAlias, cast

import structlog

from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.events.ingest.ivt.pair_counts import HOUR_SECONDS, Pair, PairCounts
from adloom.runtime.loops import pause_until_next
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

SHARE_SECONDS: Final = 1.0
ANSWER_SECONDS_MAX: Final = 5.0
AT_ONCE: Final = 1_000
MILLIS: Final = 1_000
_HASH_BYTES: Final = 12
_CAMPAIGN_BYTES: Final = 16

log: structlog.stdlib.BoundLogger = structlog.get_logger()


# Counts by minute, and the clock that they are counted by.
SharedMinutes: TypeAlias = tuple[MinuteCounts, Callable[[], float]]


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
        hour, pending = counts.hour, counts.list_pending()
        key = f"adloom:traffic:{name}:{hour}"
        for start in range(0, len(pending), AT_ONCE):
            told = pending[start : start + AT_ONCE]
            async with self._valkey.pipeline(transaction=False) as at_once:
                for pair, events in told:
                    # The stubs have each call wait for its own answer.
                    cast("Any", at_once).hincrby(key, self._hash(pair), events)
                cast("Any", at_once).expire(key, 2 * HOUR_SECONDS)
                *totals, _ = await at_once.execute()
            for (pair, events), total in zip(told, totals, strict=True):
                counts.note_shared(hour, pair, events, total)

    async def _share_minutes(self, name: str, counts: MinuteCounts, read_second: Callable[[], float]) -> None:
        pending = counts.list_pending(read_second())
        for start in range(0, len(pending), AT_ONCE):
            told = pending[start : start + AT_ONCE]
            # In one step: a count without an end would stay for ever.
            async with self._valkey.pipeline(transaction=True) as at_once:
                # The stubs have each call wait for its own answer.
                it = cast("Any", at_once)
                for one in told:
                    key = f"adloom:minute:{name}:{self._hash_address(one.key).hex()}"
                    it.incrby(key, one.requests)
                    it.pexpire(key, max(1, int(one.seconds_left * MILLIS)), nx=True)
                    it.pttl(key)
                answers = await at_once.execute()
            second = read_second()
            for one, total, left in zip(told, answers[::3], answers[2::3], strict=True):
                if left > 0:
                    one.address.note_shared(one, total, second + left / MILLIS)

    def _hash_address(self, key: bytes) -> bytes:
        mac = self._start.copy()
        mac.update(key)
        return mac.digest()

    def _hash(self, pair: Pair) -> bytes:
        address, campaign = pair
        mac = self._start.copy()
        mac.update(campaign.to_bytes(_CAMPAIGN_BYTES, "big") + address)
        return mac.digest()
