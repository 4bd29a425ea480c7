"""The health route of processes that serve nothing else."""

import asyncio
from http import HTTPStatus
from typing import Final

import msgspec

from adloom.app.listeners import take_socket
from adloom.runtime.http.plain import PlainAnswer, PlainApp
from adloom.runtime.http.server import serve

DRAIN_SECONDS_MAX: Final = 1


class QueueHealth(msgspec.Struct, frozen=True):
    """What monitors of a process with a queue read."""

    status: str
    queue: str
    uptime: float


async def answer_health(host: str, port: int, queue: str) -> None:
    """Answer health checks until a signal asks to stop."""
    clock = asyncio.get_running_loop().time
    started_at = clock()

    async def health() -> PlainAnswer:
        uptime = round(clock() - started_at, 3)
        return PlainAnswer(HTTPStatus.OK, msgspec.json.encode(QueueHealth("ok", queue, uptime)))

    async def alive() -> PlainAnswer:
        return PlainAnswer(HTTPStatus.OK, b'{"status":"ok"}')

    app = PlainApp({"/health": health, "/health/live": alive})
    await serve(app, take_socket(host, port), drain_seconds_max=DRAIN_SECONDS_MAX)
