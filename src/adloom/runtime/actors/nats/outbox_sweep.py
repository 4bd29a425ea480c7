"""Sends again what actors have sent and NATS has not acknowledged, and forgets what it has."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.actors.nats.store import Outbox
from adloom.runtime.loops import pause
from adloom.runtime.postgres import Pool

SWEEP_SECONDS: Final = 0.5
# A worker forgets what it has sent within half a second: what is older was left by another that is gone.
OLD: Final = timedelta(seconds=2)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class OutboxSweep:
    """Looks after the outbox of the shards that this worker has."""

    def __init__(self, pool: Pool, sender: NatsSender, clock: Clock) -> None:
        self._outbox = Outbox(pool)
        self._sender = sender
        self._clock = clock
        self._sent: list[UUID] = []
        self.shards: Sequence[int] = ()
        sender.on_sent = self._sent.extend

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await pause(SWEEP_SECONDS, stop)
            try:
                await self.sweep()
            except UnavailableError as error:
                log.warning("outbox_not_swept", reason=error.detail)
            except Exception:
                # The outermost loop: what waits is sent later.
                log.exception("outbox_sweep_failed")

    async def sweep(self) -> None:
        """Forget what NATS has, and send what has waited for long."""
        sent, self._sent[:] = list(self._sent), []
        if sent:
            await self._outbox.delete(sent)
        if self.shards:
            waiting = await self._outbox.list_waiting(self.shards, before=self._clock.now() - OLD)
            known = self._sender.list_waiting().union(self._sent) if waiting else set[UUID]()
            if left := [one for one in waiting if one.id not in known]:
                self._sender.forward(left)
