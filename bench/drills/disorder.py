"""Drills 8 and 11: messages twice, shuffled and lost, and a worker whose clock is wrong."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from datetime import date
from typing import Final

from adloom.budgets.kinds import make_campaign_kind, make_kinds
from adloom.budgets.messages import CampaignCounts
from adloom.core.ids import SystemIds
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.nats.connection import NatsConnection
from adloom.runtime.actors.nats.messages import decode_group
from adloom.runtime.actors.nats.pinned import ID_HEADER
from adloom.runtime.actors.nats.ports import Received
from adloom.runtime.actors.nats.sender import NatsSender
from bench.drills.cluster import Cluster
from bench.drills.equality.hosts import read_states
from bench.drills.result import Figures, require
from simulation.loop import make_random

DISORDER_SECONDS: Final = 8.0
LATE_SECONDS_MAX: Final = 0.3
COUNTS: Final = 20
ACKNOWLEDGED: Final = b'{"stream": "BRAIN", "seq": 1}'
AHEAD_SECONDS: Final = 3_600.0
POLL_SECONDS: Final = 0.3
TOMORROW_SECONDS_MAX: Final = 50.0


class DisorderlyConnection:
    """Publishes every message of actors twice and late, and loses half of those without a waiting sender."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection
        self._chance = make_random(8, "disorder")
        self._tasks: set[asyncio.Task[None]] = set()
        self.lost = 0
        self.doubled = 0

    @property
    def is_connected(self) -> bool:
        return self._connection.is_connected

    @property
    def payload_max(self) -> int:
        return self._connection.payload_max

    async def publish(
        self, subject: str, data: bytes, *, reply: str = "", headers: dict[str, str] | None = None
    ) -> bool:
        if headers is None or ID_HEADER not in headers:
            return await self._connection.publish(subject, data, reply=reply, headers=headers)
        is_plain = not any(one.is_exact for one in decode_group(data).messages)
        if is_plain and self._chance.random() < 1 / 2:
            self.lost += 1
            return await self._connection.publish(reply, ACKNOWLEDGED)
        self.doubled += 1
        again = {ID_HEADER: f"{headers[ID_HEADER]}-{self.doubled}"}
        for its_reply, its_headers in ((reply, headers), ("", again)):
            sending = self._send_late(subject, data, its_reply, its_headers)
            task = asyncio.get_running_loop().create_task(sending)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return True

    async def _send_late(self, subject: str, data: bytes, reply: str, headers: dict[str, str]) -> None:
        await asyncio.sleep(self._chance.random() * LATE_SECONDS_MAX)
        await self._connection.publish(subject, data, reply=reply, headers=headers)

    async def subscribe(self, subject: str, on_message: Callable[[Received], Awaitable[None]]) -> None:
        await self._connection.subscribe(subject, on_message)

    async def request(self, subject: str, data: bytes) -> bytes:
        return await self._connection.request(subject, data)


async def disorder_messages(cluster: Cluster) -> Figures:
    """8. Every message twice, shuffled, half of the plain ones lost: the same states."""
    connection = NatsConnection(cluster.nats_url, name="drill-disorder")
    await connection.open(asyncio.Event())
    disorderly = DisorderlyConnection(connection)
    sender = NatsSender(disorderly, {kind.name: kind for kind in make_kinds()}, SystemIds())
    stop = asyncio.Event()
    sending = asyncio.get_running_loop().create_task(sender.run(stop))
    await asyncio.sleep(0.1)
    orderly, cluster.sender = cluster.sender, sender  # The charges of the load go this way too.
    for number in range(1, COUNTS + 1):
        for address in cluster.campaigns:
            sender.tell(address, _make_counts(number))
        await asyncio.sleep(DISORDER_SECONDS / COUNTS)
    last = [sender.send_durably(address, _make_counts(COUNTS)) for address in cluster.campaigns]
    await asyncio.wait(last)
    cluster.sender = orderly
    await asyncio.sleep(5 * LATE_SECONDS_MAX)
    states = await read_states(cluster.pool, [make_campaign_kind()])
    stop.set()
    await sending
    await connection.close()
    counted = [one.counted.impressions for one in states.values() if one.counted is not None]
    require(is_so=counted == [COUNTS] * len(cluster.campaigns), what="a campaign has an older count")
    return {"NATS messages twice": disorderly.doubled, "lost": disorderly.lost}


async def set_clock_wrong(cluster: Cluster) -> Figures:
    """11. A worker's clock is an hour ahead, in tomorrow: days of campaigns never go back when it dies."""
    killed: set[str] = set()
    await cluster.add_worker("ahead", ahead_seconds=AHEAD_SECONDS)
    known: dict[Address, date] = {}
    back, ends_at = 0, time.monotonic() + TOMORROW_SECONDS_MAX
    while time.monotonic() < ends_at:
        for key, state in (await read_states(cluster.pool, [make_campaign_kind()])).items():
            back += state.day < known.get(key, date.min)
            known[key] = state.day
        is_ahead = len(set(known.values())) > 1
        if is_ahead and "ahead" not in killed:
            await asyncio.sleep(DISORDER_SECONDS)
            cluster.signal("ahead", signal.SIGKILL)
            killed.add("ahead")
            ends_at = time.monotonic() + DISORDER_SECONDS
        await asyncio.sleep(POLL_SECONDS)
    require(is_so=bool(killed), what="no campaign was in tomorrow")
    require(is_so=back == 0, what=f"{back} days went back")
    tomorrow = sum(one > min(known.values()) for one in known.values())
    return {"campaigns in tomorrow": tomorrow, "days gone back": back}


def _make_counts(number: int) -> CampaignCounts:
    return CampaignCounts(impressions=number, clicks=0, until=f"{number}-0")
