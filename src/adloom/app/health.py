"""The health route of processes that serve nothing else, and how such a process ends."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from adloom.app.listeners import take_socket
from adloom.runtime import postgres
from adloom.runtime.http.background_check import (
    BackgroundCheck,
    find_oldest_age,
    run_checks,
    wait_until_known,
)
from adloom.runtime.http.plain import PlainAnswer, PlainApp
from adloom.runtime.http.server import serve
from adloom.runtime.postgres import POSTGRES_AWAY, Pool
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, is_reachable

DRAIN_SECONDS_MAX: Final = 1
# For what is under way; what takes longer is cut off, and comes again at the next start.
STOP_SECONDS_MAX: Final = 2.0
IDLE_POLL_SECONDS: Final = 5.0
IDLE_POLLS: Final = 6

Run = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


class QueueHealth(msgspec.Struct, frozen=True):
    """What monitors of a process with a queue read."""

    status: str
    queue: str
    uptime: float


class ServerReport(msgspec.Struct, frozen=True, rename="camel"):
    """Whether the servers answered when they were last asked, and how long ago that was."""

    status: str
    checks: dict[str, str]
    age_seconds: float | None


async def answer_health(host: str, port: int, queue: str, *, pool: Pool, valkey: Valkey) -> None:
    """Answer health checks until a signal asks to stop."""
    has_postgres = BackgroundCheck(lambda: postgres.is_reachable(pool), away=POSTGRES_AWAY)
    has_valkey = BackgroundCheck(lambda: is_reachable(valkey), away=VALKEY_AWAY)
    clock = asyncio.get_running_loop().time
    started_at = clock()

    async def report_health() -> PlainAnswer:
        uptime = round(clock() - started_at, 3)
        return PlainAnswer(HTTPStatus.OK, msgspec.json.encode(QueueHealth("ok", queue, uptime)))

    async def report_alive() -> PlainAnswer:
        return PlainAnswer(HTTPStatus.OK, b'{"status":"ok"}')

    async def report_ready() -> PlainAnswer:
        await wait_until_known(has_postgres, has_valkey)
        checks = {"postgres": _name(has_postgres.result), "valkey": _name(has_valkey.result)}
        is_ready = bool(has_postgres.result and has_valkey.result)
        report = ServerReport(_name(is_ready), checks, find_oldest_age(has_postgres, has_valkey))
        status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return PlainAnswer(status, msgspec.json.encode(report))

    app = PlainApp({"/health": report_health, "/health/live": report_alive, "/health/ready": report_ready})
    async with run_checks(has_postgres, has_valkey):
        await serve(app, take_socket(host, port), drain_seconds_max=DRAIN_SECONDS_MAX)


async def run_until_stopped(
    runs: Sequence[Run], health: Coroutine[Any, Any, None], *ends: Coroutine[Any, Any, object]
) -> bool:
    """Run until the health server is stopped, or one of `ends` is over; return whether it was one of `ends`."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(stop)) for run in runs]
        answering, *_ = awaited = [group.create_task(one) for one in (health, *ends)]
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        was_asked = answering.done()
        stop.set()
        for one in awaited:
            one.cancel()
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS_MAX)
        for task in late:
            task.cancel()
    return not was_asked


async def wait_until_lasting(
    is_so: Callable[[], bool], *, poll_seconds: float = IDLE_POLL_SECONDS, polls: int = IDLE_POLLS
) -> None:
    """Return when it was so at so many looks in a row, half a minute in all."""
    in_a_row = 0
    while in_a_row < polls:
        await asyncio.sleep(poll_seconds)
        in_a_row = in_a_row + 1 if is_so() else 0


def _name(is_ok: bool | None) -> str:  # noqa: FBT001 - a word for it
    return "ok" if is_ok else "unavailable"
