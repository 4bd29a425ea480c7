"""The processes of the event log: real routes, appender, spool, projections and retention over simulated servers."""

import asyncio
import contextlib
import functools
from datetime import timedelta
from typing import Final

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import AdloomError, UnavailableError
from adloom.core.ids import IdSource
from adloom.events.ingest.api import EventRoutes
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.append import EventAppender
from adloom.events.log.spool.drain import DiskSpool, SpoolLimits
from adloom.events.ports import ProjectionStore
from adloom.events.projections.projection import RENEW_SECONDS, STANDBY_SECONDS, WAIT_SECONDS, Projection
from adloom.events.projections.retention import LogRetention
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastRoutes,
    make_problem_answer,
)
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.direct.encode import ServedEventPublisher
from adloom.serving.index.index import Index
from adloom.serving.request.context import ContextParser
from simulation.disk import Disk, DiskConnection
from simulation.event_log import EventLogConnection, EventLogServer, GroupConnection
from simulation.faults import Host, wait_unless
from simulation.tables import TablesConnection, TablesServer, TopicConnection, TopicServer

SECRET: Final = "a secret that only the simulation knows"  # noqa: S105 - as it says
RETENTION: Final = timedelta()  # Only the cursors keep an entry from being trimmed.
BATCH_MAX: Final = 50
COUNTING: Final = "event_tables"
TELLING: Final = "topics"
SEGMENT_BYTES_MAX: Final = 8_000  # So small that there are several.


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How often loops poll; over days of virtual time, polling is what costs."""

    lease_seconds: float = 5.0
    renew_seconds: float = RENEW_SECONDS
    standby_seconds: float = STANDBY_SECONDS
    wait_seconds: float = WAIT_SECONDS
    upkeep_seconds: float = 30.0
    rollup_seconds: float = 20.0
    spool_poll_seconds: float = 30.0
    settle_seconds_max: float = 300.0  # Until everything has gone through when nothing goes wrong any more.


BRISK: Final = Pace()
CALM: Final = Pace(
    lease_seconds=600.0,
    renew_seconds=200.0,
    standby_seconds=60.0,
    wait_seconds=600.0,
    upkeep_seconds=600.0,
    rollup_seconds=900.0,
    spool_poll_seconds=300.0,
    settle_seconds_max=7_200.0,
)


class ConnectionLostError(Exception):
    """A visitor's connection broke; the fate of the request is unknown."""


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives the processes."""

    log: EventLogServer
    tables: TablesServer
    topic: TopicServer
    disk: Disk


class DeliveryProcess:
    """The public routes over one index, with a spool on the machine's disk, or without one."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        name: str,
        servers: Servers,
        index: Index,
        *,
        clock: Clock,
        ids: IdSource,
        spool_bytes_max: int,
        pace: Pace,
    ) -> None:
        self.host = Host()
        connection = EventLogConnection(servers.log, self.host)
        self._spool = None
        if spool_bytes_max:
            limits = SpoolLimits(
                bytes_max=spool_bytes_max,
                segment_bytes_max=SEGMENT_BYTES_MAX,
                batch_max=BATCH_MAX,
                poll_seconds=pace.spool_poll_seconds,
            )
            disk = DiskConnection(servers.disk, self.host)
            self._spool = DiskSpool(disk, connection, process=name, ids=ids, limits=limits)
        self._appender = EventAppender(connection, self._spool)
        keys = TokenKeys(SECRET)
        serve = ServeRoutes(
            lambda: index,
            keys.signer,
            clock,
            ids,
            public_url="",
            contexts=_make_context_parser(),
            publisher=ServedEventPublisher(self._appender.enqueue),
        )
        events = EventRoutes(lambda: index, self._appender, keys, clock)
        self._table = FastRoutes([*serve.list_routes(), *events.list_routes()])

    async def run(self, stop: asyncio.Event) -> None:
        """Serve; a clean stop appends or spools what has been taken in."""
        async with self._spool or contextlib.nullcontext(), self._appender:
            await stop.wait()

    async def ask(self, request: FastRequest) -> FastAnswer:
        """Answer as the protocol does; a visitor whose server dies loses the connection."""
        route = self._table.find(request.method, request.path)
        assert route is not None
        try:
            answer = route.handler(request)
            if isinstance(answer, DeferredAnswer):
                answer = _make_future(answer)
            if isinstance(answer, asyncio.Future):
                _allow_to_be_overlooked(answer)
                await asyncio.wait([answer, self.host.died], return_when=asyncio.FIRST_COMPLETED)
                if not self.host.is_alive:
                    raise ConnectionLostError
                answer = answer.result()
        except AdloomError as error:
            return make_problem_answer(error)
        assert isinstance(answer, FastAnswer), "no route of these answers later"
        return answer


def _make_future(deferred: DeferredAnswer) -> "asyncio.Future[FastAnswer]":
    future: asyncio.Future[FastAnswer] = asyncio.get_running_loop().create_future()
    deferred.add_callback(lambda _, answer: None if future.done() else future.set_result(answer))
    return future


class WorkerProcess:
    """The projections, the retention of the event log, and the rollup of days that are over."""

    def __init__(self, name: str, servers: Servers, *, clock: Clock, pace: Pace) -> None:
        self.host = Host()
        self._name = name
        self._log = servers.log
        self._clock = clock
        self._pace = pace
        self._tables = TablesConnection(servers.tables, self.host)
        self._topic = TopicConnection(servers.topic, self._tables, self.host)
        counting = self._make_projection(COUNTING, self._tables)
        self._projections = (counting, self._make_projection(TELLING, self._topic, follows=counting))
        self._upkeep = LogRetention(
            EventLogConnection(servers.log, self.host),
            self._read_cursors,
            clock=clock,
            retention=RETENTION,
            poll_seconds=pace.upkeep_seconds,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the event log; a clean stop finishes the batch."""
        async with asyncio.TaskGroup() as group:
            for projection in self._projections:
                group.create_task(projection.run(stop))
            group.create_task(self._upkeep.run(stop))
            group.create_task(self._roll_up(stop))

    def _make_projection(
        self, name: str, store: ProjectionStore, *, follows: Projection | None = None
    ) -> Projection:
        pace = self._pace
        place = GroupConnection(
            self._log, self.host, name, consumer=self._name, lease_seconds=pace.lease_seconds
        )
        return Projection(
            name,
            place,
            store,
            follows=follows,
            batch_max=BATCH_MAX,
            wait_seconds=pace.wait_seconds,
            renew_seconds=pace.renew_seconds,
            standby_seconds=pace.standby_seconds,
        )

    async def _read_cursors(self) -> dict[str, str]:
        return {COUNTING: await self._tables.read_cursor(), TELLING: await self._topic.read_cursor()}

    async def _roll_up(self, stop: asyncio.Event) -> None:
        while await wait_unless(stop, self._pace.rollup_seconds):
            with contextlib.suppress(UnavailableError):
                await self._tables.roll_up_stale(before=self._clock.now().date())


@functools.cache
def _make_context_parser() -> ContextParser:
    """Share one parser: making one takes as long as a thousand events."""
    return ContextParser()


def _allow_to_be_overlooked(answer: asyncio.Future[FastAnswer]) -> None:
    """Keep the loop from logging an error that no visitor waits for any more."""
    answer.add_done_callback(lambda done: done.cancelled() or done.exception())
