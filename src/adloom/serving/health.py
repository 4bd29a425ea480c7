"""Health of a delivery process: ready while it has an index and can accept events."""

import asyncio
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Protocol

import msgspec

from adloom.core.clock import Clock
from adloom.runtime import postgres, valkey
from adloom.runtime.http.background_check import (
    BackgroundCheck,
    find_oldest_age,
    run_checks,
    wait_until_known,
)
from adloom.runtime.http.plain import PlainAnswer, PlainRoute
from adloom.serving.background.index_refresh import IndexRefresher

DISK_EVERY_SECONDS = 2.0  # Each check writes a block.


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


class DeliveryHealthReport(msgspec.Struct, frozen=True, rename="camel"):
    """The whole, its parts, and how long ago the servers were last asked."""

    status: str
    checks: Checks
    age_seconds: float | None = None


class SpoolState(Protocol):
    """What is asked of the spool."""

    @property
    def is_able(self) -> bool: ...

    @property
    def waiting_bytes(self) -> int: ...

    def can_write(self) -> bool:
        """Whether its disk takes a block now; takes a while."""
        ...


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
        self._clock = clock
        self.postgres = BackgroundCheck(lambda: postgres.is_reachable(pool), away=postgres.POSTGRES_AWAY)
        self.valkey = BackgroundCheck(lambda: valkey.is_reachable(client), away=valkey.VALKEY_AWAY)
        self.disk = BackgroundCheck(self._check_disk, away=(OSError,), every_seconds=DISK_EVERY_SECONDS)

    def run(self) -> AbstractAsyncContextManager[None]:
        """Ask the servers in the background while a block runs."""
        return run_checks(self.postgres, self.valkey, self.disk)

    def list_routes(self) -> dict[str, PlainRoute]:
        return {"/health": self.check_ready, "/health/ready": self.check_ready}

    async def check_ready(self) -> PlainAnswer:
        """Answer 200 while ads can be served and events accepted, at once, by what the checks have found.

        The database is not required: without it the index grows old, and serving goes on.
        """
        await wait_until_known(self.postgres, self.valkey, self.disk)
        has_event_log = bool(self.valkey.result)
        checks = Checks(
            postgres=_name_status(is_ok=bool(self.postgres.result)),
            valkey=_name_status(is_ok=has_event_log),
            index=self._check_index(),
            spool=self._check_spool(),
        )
        can_accept = has_event_log or self._can_spool
        is_ready = can_accept and self._refresher.version is not None
        health = DeliveryHealthReport(
            status=_name_status(is_ok=is_ready),
            checks=checks,
            age_seconds=find_oldest_age(self.postgres, self.valkey),
        )
        status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return PlainAnswer(status, msgspec.json.encode(health))

    def _check_index(self) -> IndexCheck:
        age = self._refresher.measure_age(self._clock.now())
        return IndexCheck(
            status=_name_status(is_ok=age is not None),
            version=self._refresher.version,
            age_seconds=None if age is None else round(age.total_seconds(), 3),
        )

    def _check_spool(self) -> SpoolCheck:
        spool = self._spool
        if spool is None:
            return SpoolCheck("off")
        return SpoolCheck(_name_status(is_ok=self._can_spool), spool.waiting_bytes)

    async def _check_disk(self) -> bool:
        return self._spool is not None and await asyncio.to_thread(self._spool.can_write)

    @property
    def _can_spool(self) -> bool:
        """Whether the spool has room, and its disk takes writes: that is known without any event."""
        return self._spool is not None and self._spool.is_able and bool(self.disk.result)


def _name_status(*, is_ok: bool) -> str:
    return "ok" if is_ok else "unavailable"
