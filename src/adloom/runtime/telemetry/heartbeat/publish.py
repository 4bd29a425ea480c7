"""Telling how a process is doing: once a second, over Valkey, so that it works on any number of machines."""

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec
import structlog

from adloom import VERSION
from adloom.core.clock import Clock
from adloom.runtime.settings import Telemetry
from adloom.runtime.telemetry.heartbeat.keys import (
    FILLED,
    HOUR,
    KEPT,
    MINUTE,
    PROCESSES,
    REQUESTS,
    SETTINGS,
    floor_time,
    traffic_key,
)
from adloom.runtime.telemetry.heartbeat.model import Heartbeat, Reading
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

INTERVAL_SECONDS: Final = 1.0
RATE_OVER: Final = 10  # Tellings: of few requests a single second says little.
# Settings do not change while a process lives; they are told again for a Valkey that has forgotten them.
SETTINGS_EVERY: Final = 60
LAST_WORD_SECONDS_MAX: Final = 0.5  # Who stops while Valkey is away is found missing a little later.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class HeartbeatPublisher:
    """Tells the figures of a process, and adds what it has served to the counts of all."""

    def __init__(  # noqa: PLR0913 - what processes differ in
        self,
        valkey: Valkey,
        clock: Clock,
        *,
        telemetry: Telemetry,
        settings: Mapping[str, str],
        read: Callable[[], Reading] = Reading,
        is_serving: bool = False,
    ) -> None:
        self._valkey = valkey
        self._clock = clock
        self._process = telemetry.process
        self._settings = msgspec.json.encode(dict(settings))
        self._read = read
        self._is_serving = is_serving
        self._host = socket.gethostname()
        self._started_at = clock.now()
        self._told: deque[tuple[datetime, Reading]] = deque(maxlen=RATE_OVER)
        self._tellings = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Tell until told to stop; then take the name off the list."""
        is_away = False
        while not stop.is_set():
            try:
                await self.publish()
                is_away = False
            except VALKEY_AWAY as error:
                if not is_away:
                    log.warning("vitals_wait", reason=str(error) or type(error).__name__)
                is_away = True
            except Exception:
                # Figures for people are never worth the process that they are about.
                log.exception("vitals_failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL_SECONDS):
                    await stop.wait()
        with contextlib.suppress(*VALKEY_AWAY):
            name = self._build_heartbeat(self._clock.now(), self._read()).id
            await self._valkey.hdel(PROCESSES, name)
            await self._valkey.hdel(SETTINGS, name)

    async def publish(self) -> None:
        """Tell once."""
        now, reading = self._clock.now(), self._read()
        vitals = self._build_heartbeat(now, reading)
        before = self._told[-1][1] if self._told else Reading()
        pipe = self._valkey.pipeline(transaction=False)
        pipe.hset(PROCESSES, vitals.id, msgspec.json.encode(vitals).decode())
        if self._tellings % SETTINGS_EVERY == 0:
            pipe.hset(SETTINGS, vitals.id, self._settings.decode())
        requests, filled = reading.requests - before.requests, reading.filled - before.filled
        if requests and self._is_serving:
            for step in (HOUR, MINUTE):
                key = traffic_key(floor_time(now, step), step)
                pipe.hincrby(key, REQUESTS, requests)
                pipe.hincrby(key, FILLED, filled)
                pipe.expire(key, int(KEPT[step].total_seconds()))
        await pipe.execute()
        self._told.append((now, reading))
        self._tellings += 1

    def _build_heartbeat(self, now: datetime, reading: Reading) -> Heartbeat:
        rate = 0.0
        if self._told and (elapsed := (now - self._told[0][0]).total_seconds()) > 0:
            rate = (reading.requests - self._told[0][1].requests) / elapsed
        return Heartbeat(
            process=self._process,
            kind=self._process.partition("-")[0],
            host=self._host,
            pid=os.getpid(),
            version=VERSION,
            started_at=self._started_at,
            told_at=now,
            requests_per_second=round(rate, 2),
            reading=reading,
        )


@contextlib.asynccontextmanager
async def publish_meanwhile(teller: HeartbeatPublisher) -> AsyncGenerator[None]:
    """Tell while something runs."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(teller.run(stop))
        try:
            yield
        finally:
            stop.set()
            await asyncio.wait([task], timeout=LAST_WORD_SECONDS_MAX)
            task.cancel()
