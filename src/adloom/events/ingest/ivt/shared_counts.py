"""Shares the counts of pairs with other processes, in Valkey: once a second, and no event waits for it.

    adloom:traffic:<what>:<hour>    hash of a pair -> events of the hour, by all processes

Addresses are not stored: a pair is there as a keyed hash, for two hours.
"""

import asyncio
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, cast

import structlog

from adloom.events.ingest.ivt.pair_counts import HOUR_SECONDS, Pair, PairCounts
from adloom.runtime.loops import pause
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

SHARE_SECONDS: Final = 1.0
ANSWER_SECONDS_MAX: Final = 5.0
PAIRS_AT_ONCE: Final = 1_000
_HASH_BYTES: Final = 12
_CAMPAIGN_BYTES: Final = 16

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class CountSharer:
    """Tells what this process has counted, and learns what others have. While Valkey is away each counts alone."""

    def __init__(self, valkey: Valkey, counts: Mapping[str, PairCounts], *, secret: str) -> None:
        self._valkey = valkey
        self._counts = counts
        key = blake2b(secret.encode(), digest_size=32, person=b"adloom-addresses").digest()
        self._start = blake2b(key=key, digest_size=_HASH_BYTES)
        self._is_away = False

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await pause(SHARE_SECONDS, stop)
            await self.share()

    async def share(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                for name, counts in self._counts.items():
                    await self._share(name, counts)
        except (*VALKEY_AWAY, TimeoutError) as error:
            if not self._is_away:
                log.warning("traffic_counts_not_shared", reason=repr(error))
            self._is_away = True
        else:
            self._is_away = False

    async def _share(self, name: str, counts: PairCounts) -> None:
        hour, pending = counts.hour, counts.list_pending()
        key = f"adloom:traffic:{name}:{hour}"
        for start in range(0, len(pending), PAIRS_AT_ONCE):
            told = pending[start : start + PAIRS_AT_ONCE]
            async with self._valkey.pipeline(transaction=False) as at_once:
                for pair, events in told:
                    # The stubs have each call wait for its own answer.
                    cast("Any", at_once).hincrby(key, self._hash(pair), events)
                cast("Any", at_once).expire(key, 2 * HOUR_SECONDS)
                *totals, _ = await at_once.execute()
            for (pair, events), total in zip(told, totals, strict=True):
                counts.note_shared(hour, pair, events, total)

    def _hash(self, pair: Pair) -> bytes:
        address, campaign = pair
        mac = self._start.copy()
        mac.update(campaign.to_bytes(_CAMPAIGN_BYTES, "big") + address)
        return mac.digest()
