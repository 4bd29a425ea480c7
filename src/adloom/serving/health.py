"""Health of a delivery process: ready while it has an index and can accept events."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Protocol

import msgspec

from adloom.core.clock import Clock
from adloom.runtime import postgres, valkey
from adloom.runtime.http.plain import PlainAnswer
from adloom.serving.background.index_refresh import IndexRefresher

FRESH_FOR = timedelta(milliseconds=200)
CHECK_SECONDS_MAX = 1.0  # Less than probes usually wait.


class IndexCheck(msgspec.Struct, frozen=True, rename="camel"):
    """The version of the catalog that is served, and how long ago it was last known to be the newest."""

    status: str
    version: int | None
    age_seconds: float | None


class SpoolCheck(msgspec.Struct, frozen=True, rename="camel"):
    """Whether events can be spooled to this machine's disk, and how much waits there for the event log."""

    status: str
    waiting_bytes: int = 0


class Checks(msgspec.Struct, frozen=True):
    """The parts that delivery depends on."""

    postgres: str
    valkey: str
    index: IndexCheck
    spool: SpoolCheck


class DeliveryHealthReport(msgspec.Struct, frozen=True):
    """The whole, and its parts."""

    status: str
    checks: Checks


class SpoolState(Protocol):
    """What is asked of the spool."""

    @property
    def is_able(self) -> bool: ...

    @property
    def waiting_bytes(self) -> int: ...


class DeliveryHealth:
    """Answers the health routes that look beyond the process itself."""

    def __init__(
        self,
        refresher: IndexRefresher,
        pool: postgres.Pool,
        client: valkey.Valkey,
        clock: Clock,
        *,
        spool: SpoolState | None = None,
    ) -> None:
        self._refresher = refresher
        self._spool = spool
        self._pool = pool
        self._client = client
        self._clock = clock
        self._lock = asyncio.Lock()
        self._last: tuple[datetime, PlainAnswer] | None = None

    async def check_ready(self) -> PlainAnswer:
        """Answer 200 while ads can be served and events accepted.

        The route is public. So one request checks, and all concurrent ones share its result: a flood of them must not
        take the connections from the index and the event log.
        """
        async with self._lock:
            if self._last is None or abs(self._clock.now() - self._last[0]) > FRESH_FOR:
                answer = await self._check()
                self._last = self._clock.now(), answer
            return self._last[1]

    async def _check(self) -> PlainAnswer:
        """Check all parts. The database is not required: without it the index grows old, and serving goes on."""
        async with asyncio.TaskGroup() as group:
            has_event_log = group.create_task(_check_in_time(valkey.is_reachable(self._client)))
            has_catalog = group.create_task(_check_in_time(postgres.is_reachable(self._pool)))
        checks = Checks(
            postgres=_name_status(is_ok=has_catalog.result()),
            valkey=_name_status(is_ok=has_event_log.result()),
            index=self._check_index(),
            spool=self._check_spool(),
        )
        can_accept = has_event_log.result() or (self._spool is not None and self._spool.is_able)
        is_ready = can_accept and self._refresher.version is not None
        status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        health = DeliveryHealthReport(
            status="ok" if status is HTTPStatus.OK else "unavailable", checks=checks
        )
        return PlainAnswer(status, msgspec.json.encode(health))

    def _check_index(self) -> IndexCheck:
        age = self._refresher.age(self._clock.now())
        return IndexCheck(
            status=_name_status(is_ok=age is not None),
            version=self._refresher.version,
            age_seconds=None if age is None else round(age.total_seconds(), 3),
        )

    def _check_spool(self) -> SpoolCheck:
        spool = self._spool
        if spool is None:
            return SpoolCheck("off")
        return SpoolCheck(_name_status(is_ok=spool.is_able), spool.waiting_bytes)


async def _check_in_time(look: Awaitable[bool]) -> bool:
    """Treat a part that does not answer soon as away."""
    try:
        async with asyncio.timeout(CHECK_SECONDS_MAX):
            return await look
    except TimeoutError:
        return False


def _name_status(*, is_ok: bool) -> str:
    return "ok" if is_ok else "unavailable"
