"""The processes of the house: the real routes, appender, projection and upkeep over simulated servers."""

import asyncio
from datetime import timedelta
from typing import Final

from adloom.core.clock import Clock
from adloom.core.errors import AdloomError
from adloom.core.ids import IdSource
from adloom.delivery.api import ServeRoutes
from adloom.delivery.index import Index
from adloom.ledger.api import EventRoutes
from adloom.ledger.append import LedgerAppender
from adloom.ledger.projection import Projection
from adloom.ledger.token import TokenKeys
from adloom.ledger.upkeep import Upkeep
from adloom.runtime.http.hot import Answer, HotRequest, HotRoutes, problem_answer
from adloom.simulation.faults import Host
from adloom.simulation.servers import LedgerConnection, LedgerServer, TablesConnection, TablesServer

SECRET: Final = "a secret that only the simulation knows"  # noqa: S105 - as it says
# Nobody sleeps here, so waiting long costs nothing, and looking often would cost much.
WAIT_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 300.0
RETENTION: Final = timedelta()  # Only the cursor keeps an entry from being trimmed.


class ConnectionLostError(Exception):
    """A reader's connection broke; what became of the request is not known."""


class DeliveryProcess:
    """The public routes over one index."""

    def __init__(self, ledger: LedgerServer, index: Index, clock: Clock, ids: IdSource) -> None:
        self.host = Host()
        self._appender = LedgerAppender(LedgerConnection(ledger, self.host))
        keys = TokenKeys(SECRET)
        serve = ServeRoutes(lambda: index, keys.signer, clock, ids, public_url="")
        self._events = EventRoutes(lambda: index, self._appender, keys, clock)
        self._table = HotRoutes([*serve.routes(), *self._events.routes()])

    async def run(self, stop: asyncio.Event) -> None:
        """Serve; a clean stop appends what has been taken in."""
        async with self._appender:
            await stop.wait()

    async def ask(self, request: HotRequest) -> Answer:
        """Answer as the protocol does; a reader whose server dies loses the connection."""
        route = self._table.find(request.method, request.path)
        assert route is not None
        try:
            answer = route.handler(request)
            if isinstance(answer, asyncio.Future):
                _allow_to_be_overlooked(answer)
                await asyncio.wait([answer, self.host.died], return_when=asyncio.FIRST_COMPLETED)
                if not self.host.is_alive:
                    raise ConnectionLostError
                answer = answer.result()
        except AdloomError as error:
            return problem_answer(error)
        assert answer is not None
        return answer


class WorkerProcess:
    """The projection and the upkeep of the ledger."""

    def __init__(self, ledger: LedgerServer, tables: TablesServer, clock: Clock) -> None:
        self.host = Host()
        reader, writer = LedgerConnection(ledger, self.host), TablesConnection(tables, self.host)
        self._projection = Projection("simulated", reader, writer, batch_max=50, wait_seconds=WAIT_SECONDS)
        self._upkeep = Upkeep(
            reader, writer.cursors, clock=clock, retention=RETENTION, look_seconds=LOOK_SECONDS
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the ledger; a clean stop finishes the batch."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._projection.run(stop))
            group.create_task(self._upkeep.run(stop))


def _allow_to_be_overlooked(answer: asyncio.Future[Answer]) -> None:
    """Let the loop not complain of an error that nobody asked for: readers run out of patience."""
    answer.add_done_callback(lambda done: done.cancelled() or done.exception())
