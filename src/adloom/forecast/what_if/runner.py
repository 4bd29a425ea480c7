"""Simulates for the control plane in processes of their own: its loop goes on, and a slow one is killed."""

import asyncio
import subprocess
import sys
from typing import Final
from uuid import UUID

import msgspec
import structlog

from adloom.core.errors import RateLimitedError, UnavailableError
from adloom.forecast.what_if.question import WhatIfQuestion, WhatIfResult

AT_ONCE_MAX: Final = 2
SECONDS_MAX: Final = 8.5  # With what is read before, an answer takes ten at most.
RETRY_SECONDS: Final = 5
SAID_MAX: Final = 1_000
COMMAND: Final = (sys.executable, "-m", "adloom.forecast.what_if.process")

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class WhatIfRunner:
    """The simulations that run for this process."""

    def __init__(self, *, seconds_max: float = SECONDS_MAX, at_once_max: int = AT_ONCE_MAX) -> None:
        self._seconds_max = seconds_max
        self._at_once_max = at_once_max
        self._running: list[UUID | None] = []  # The accounts that they are for.

    def check_free(self, account_id: UUID | None) -> None:
        """Raise if no other simulation may begin now; one of an account leaves a place to others."""
        if len(self._running) >= self._at_once_max or (account_id and account_id in self._running):
            raise RateLimitedError(
                "As many simulations run already as may; ask again in a few seconds.",
                retry_after_seconds=RETRY_SECONDS,
            )

    async def run(self, question: WhatIfQuestion, account_id: UUID | None) -> WhatIfResult:
        """Simulate, or raise UnavailableError if that takes too long."""
        self.check_free(account_id)
        self._running.append(account_id)
        try:
            return msgspec.msgpack.decode(
                await self._run_process(msgspec.msgpack.encode(question)), type=WhatIfResult
            )
        finally:
            self._running.remove(account_id)

    async def _run_process(self, question: bytes) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            async with asyncio.timeout(self._seconds_max):
                answer, said = await process.communicate(question)
        except TimeoutError:
            raise UnavailableError(
                "The simulation took too long: this machine is busy. Ask again later.",
                retry_after_seconds=RETRY_SECONDS,
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            log.error("what_if_failed", said=said.decode(errors="replace")[-SAID_MAX:])
            raise UnavailableError("The simulation failed; the log of the control plane says why.")
        return answer
