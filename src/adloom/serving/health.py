"""How a delivery process is doing: it is ready while it has an index and can take events."""

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
LOOK_SECONDS_MAX = 1.0  # Less than who asks usually waits.


class IndexCheck(msgspec.Struct, frozen=True, rename="camel"):
    """Which version of the catalog is served, and how long ago it was last known to be the newest."""

    status: str
    version: int | None
    age_seconds: float | None


class SpoolCheck(msgspec.Struct, frozen=True, rename="camel"):
    """Whether events can be kept on this machine's disk, and how much waits there for the ledger."""

    status: str
    waiting_bytes: int = 0


class Checks(msgspec.Struct, frozen=True):
    """The parts that delivery leans on."""

    postgres: str
    valkey: str
    index: IndexCheck
    spool: SpoolCheck


class DeliveryHealthReport(msgspec.Struct, frozen=True):
    """The whole, and its parts."""

    status: str
    checks: Checks


class _Look(msgspec.Struct, frozen=True):
    at: datetime
    answer: PlainAnswer


class SpoolState(Protocol):
    """What is asked of the spool."""

    @property
    def is_able(self) -> bool:
        """Whether it would take events."""
        ...

    @property
    def waiting_bytes(self) -> int:
        """How much waits in it."""
        ...


class DeliveryHealth:
    """Answers the health routes that look further than the process itself."""

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
        self._turns = asyncio.Lock()
        self._last: _Look | None = None

    async def check_ready(self) -> PlainAnswer:
        """Answer 200 while ads can be served and events accepted.

        The route is public. So one looks and all who ask meanwhile get what it saw: a flood of questions
        must not take the connections from the index and the ledger.
        """
        async with self._turns:
            if self._last is None or abs(self._clock.now() - self._last.at) > FRESH_FOR:
                answer = await self._check()
                self._last = _Look(self._clock.now(), answer)
            return self._last.answer

    async def _check(self) -> PlainAnswer:
        """Look at all parts; the database is not counted: without it the index grows old, and serving goes on."""
        async with asyncio.TaskGroup() as group:
            has_ledger = group.create_task(_in_time(valkey.is_reachable(self._client)))
            has_catalog = group.create_task(_in_time(postgres.is_reachable(self._pool)))
        checks = Checks(
            postgres=_word(is_well=has_catalog.result()),
            valkey=_word(is_well=has_ledger.result()),
            index=self._index(),
            spool=self._spool_check(),
        )
        can_accept = has_ledger.result() or (self._spool is not None and self._spool.is_able)
        is_ready = can_accept and self._refresher.version is not None
        status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        health = DeliveryHealthReport(
            status="ok" if status is HTTPStatus.OK else "unavailable", checks=checks
        )
        return PlainAnswer(status, msgspec.json.encode(health))

    def _index(self) -> IndexCheck:
        age = self._refresher.age(self._clock.now())
        return IndexCheck(
            status=_word(is_well=age is not None),
            version=self._refresher.version,
            age_seconds=None if age is None else round(age.total_seconds(), 3),
        )

    def _spool_check(self) -> SpoolCheck:
        spool = self._spool
        if spool is None:
            return SpoolCheck("off")
        return SpoolCheck(_word(is_well=spool.is_able), spool.waiting_bytes)


async def _in_time(look: Awaitable[bool]) -> bool:
    """Take a part that does not answer soon for one that is away."""
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            return await look
    except TimeoutError:
        return False


def _word(*, is_well: bool) -> str:
    return "ok" if is_well else "unavailable"
