"""A topic in memory: what counted is told there, by a projection that follows the tables, with its faults."""

import contextlib
from collections.abc import Sequence

from adloom.core.errors import UnavailableError
from adloom.events.log.entry import BEGINNING
from adloom.events.log.event import Click, Impression
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry
from simulation.faults import Faults, Host, Outages
from simulation.laws import EventKey
from simulation.tables import TablesConnection, key_of


class TopicServer:
    """A topic and the cursor of its projection, on the ledger's server."""

    def __init__(self, faults: Faults, outages: Outages) -> None:
        self.faults = faults
        self.outages = outages
        self.cursor = BEGINNING
        self.told: list[EventKey] = []

    def publish(self, keys: Sequence[EventKey], *, after: str, cursor: str) -> None:
        """Do what the script does: compare, tell and move, all at once."""
        if self.cursor != after:
            raise CursorMovedError
        self.told += keys
        self.cursor = cursor
        self.faults.trace.note("told", cursor.encode())


class TopicConnection:
    """One process's way to the topic."""

    def __init__(self, server: TopicServer, tables: TablesConnection, host: Host) -> None:
        self._server = server
        self._tables = tables
        self._host = host
        self._faults = server.faults

    async def read_cursor(self) -> str:
        """Tell how far it is told."""
        await self._faults.travel()
        self._server.outages.check(self._host)
        return self._server.cursor

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Tell what counted of a batch; the answer may be lost."""
        counted = await self._tables.find_counted(records)
        happenings = [one.event for one in counted]
        keys = [key_of(one) for one in happenings if isinstance(one, Impression | Click)]

        def publish_unheard() -> None:
            with contextlib.suppress(CursorMovedError):
                self._server.publish(keys, after=after, cursor=cursor)

        await self._faults.travel()
        self._server.outages.check(self._host)
        if self._faults.later("topic late", publish_unheard):
            raise UnavailableError("It takes too long.")
        self._server.publish(keys, after=after, cursor=cursor)
        await self._faults.travel()
        self._server.outages.check(self._host)
        if self._faults.strikes("topic unanswered", self._faults.rates.answer_lost):
            raise UnavailableError("The answer was lost.")
        return BatchResult(counted=len(keys), repeated=len(records) - len(counted))
