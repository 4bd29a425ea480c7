"""Drills with two of every process: one of delivery, control, worker or Valkey is killed under a load of events."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import httpx

from bench.drills.parts.machines import ANSWER_SECONDS_MAX, NAMES, Parts, run_parts
from bench.drills.parts.secrets import change_secrets
from bench.drills.result import Figures, require

SENDERS: Final = 8
PAUSE_SECONDS: Final = 0.02
CALM_SECONDS: Final = 2.0
AWAY_SECONDS: Final = 3.0
COUNTED_SECONDS_MAX: Final = 120.0
POLL_SECONDS: Final = 0.2
ASKED: Final = 20
# Those without a token: a drill may report offers of its own.
COUNTED: Final = """
    SELECT count(*), count(DISTINCT correlation_id) FROM events.banner_impressions WHERE request_id IS NULL
"""

PartDrill = Callable[[Parts], Awaitable[Figures]]


class EventLoad:
    """Reports impressions to both deliveries; what is not accepted is reported again, to the other one."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stop = asyncio.Event()
        self._accepted_at = time.monotonic()
        self.accepted = 0
        self.refused = 0
        self.pause_seconds = 0.0  # The longest without an accepted event.

    async def run(self) -> None:
        async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX) as client, asyncio.TaskGroup() as group:
            for sender in range(SENDERS):
                group.create_task(self._send_all(client, sender))

    def stop(self) -> None:
        self._stop.set()

    def begin(self) -> None:
        """Begin to measure pauses."""
        self._accepted_at, self.pause_seconds = time.monotonic(), 0.0

    async def _send_all(self, client: httpx.AsyncClient, sender: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            event = {"correlationId": f"drill-{sender}-{number}", **self._parts.impression}
            await self._send(client, event, place=(sender + number) % len(NAMES))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _send(self, client: httpx.AsyncClient, event: dict[str, str], *, place: int) -> None:
        while not await self._is_accepted(client, event, NAMES[place]):
            self.refused += 1
            place = (place + 1) % len(NAMES)
            await asyncio.sleep(PAUSE_SECONDS)
        now = time.monotonic()
        self.pause_seconds = max(self.pause_seconds, now - self._accepted_at)
        self._accepted_at = now
        self.accepted += 1

    async def _is_accepted(self, client: httpx.AsyncClient, event: dict[str, str], name: str) -> bool:
        url = f"{self._parts.find_url('delivery', name)}/banners/events/impression"
        try:
            answer = await client.post(url, json=event)
        except httpx.HTTPError:
            return False
        return answer.status_code == HTTPStatus.ACCEPTED


async def run_part_drill(drill: PartDrill) -> Figures:
    """Run a drill under load; then every event that was accepted must be counted once."""
    async with run_parts() as parts:
        load = EventLoad(parts)
        reporting = asyncio.get_running_loop().create_task(load.run())
        await asyncio.sleep(CALM_SECONDS)
        load.begin()
        figures = await drill(parts)
        await asyncio.sleep(CALM_SECONDS)
        pause = load.pause_seconds
        load.stop()
        await reporting
        seconds = await _wait_until_counted(parts, load.accepted)
    return {
        **figures,
        "longest without an accepted event, s": pause,
        "events sent again": load.refused,
        "events accepted and counted once": load.accepted,
        "all counted after the load, s": seconds,
    }


async def _wait_until_counted(parts: Parts, events: int) -> float:
    began_at = time.monotonic()
    while True:
        row = await parts.pool.fetchrow(COUNTED)
        assert row is not None
        counted, distinct = row
        require(is_so=counted == distinct, what=f"{counted - distinct} events were counted twice")
        require(is_so=counted <= events, what=f"{counted} events were counted, {events} were accepted")
        seconds = time.monotonic() - began_at
        if counted == events:
            return seconds
        require(is_so=seconds <= COUNTED_SECONDS_MAX, what=f"{events - counted} events were lost")
        await asyncio.sleep(POLL_SECONDS)


async def kill_delivery(parts: Parts) -> Figures:
    """Delivery. One of two is killed, and starts again: events go to the other, and none is lost."""
    await parts.kill("delivery", "a")
    await asyncio.sleep(AWAY_SECONDS)
    began_at = time.monotonic()
    await parts.start("delivery", "a")
    return {"ready again, s": time.monotonic() - began_at}


async def kill_control(parts: Parts) -> Figures:
    """Control. One of two is killed: who has logged in there goes on at the other."""
    await parts.kill("control", "a")
    slowest = 0.0
    headers = {"Authorization": f"Bearer {parts.token}"}
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX, headers=headers) as client:
        for _ in range(ASKED):
            began_at = time.monotonic()
            answer = await client.get(f"{parts.find_url('control', 'b')}/admin/campaigns")
            require(is_so=answer.status_code == HTTPStatus.OK, what=f"it answered {answer.status_code}")
            slowest = max(slowest, time.monotonic() - began_at)
    await parts.start("control", "a")
    return {"slowest answer of the other, s": slowest}


async def kill_projections(parts: Parts) -> Figures:
    """Projections. The worker that counts events is killed: the other goes on counting."""
    seconds = 0.0
    for name in NAMES:
        await parts.kill("worker", name)
        before: int = (await parts.pool.fetchrow(COUNTED) or (0,))[0]
        began_at = time.monotonic()
        while (await parts.pool.fetchrow(COUNTED) or (0,))[0] <= before:
            await asyncio.sleep(POLL_SECONDS)
            waited = time.monotonic() - began_at
            require(is_so=waited <= COUNTED_SECONDS_MAX, what=f"nothing was counted for {waited:.0f} s")
        seconds = max(seconds, time.monotonic() - began_at)
        await parts.start("worker", name)
    return {"counted again, s": seconds}


async def kill_valkey(parts: Parts) -> Figures:
    """Valkey. The primary is killed and sentinels promote its replica: events are spooled, and none is lost."""
    await parts.valkey.end(signal.SIGKILL)
    began_at = time.monotonic()
    await parts.sentinels[0].wait_until_moved(parts.replica.port or 0)
    promoted = time.monotonic() - began_at
    await asyncio.sleep(AWAY_SECONDS)
    await parts.valkey.start()  # As the replica of the other.
    return {"promoted, s": promoted}


PART_DRILLS: Final[dict[str, PartDrill]] = {
    "delivery": kill_delivery,
    "control": kill_control,
    "projections": kill_projections,
    "valkey": kill_valkey,
    "secrets": change_secrets,
}
