"""A topic in memory: a projection that follows the tables publishes there what counted; with its faults."""

from collections.abc import Sequence

from adloom.events.log.entry import BEGINNING
from adloom.events.log.event import Click, Impression
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry
from simulation.faults import Connection, Faults, Host, Outages
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
        """Compare, publish and move the cursor at once, as the script does."""
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
        self._calls = Connection(server.faults, server.outages, host)

    async def read_cursor(self) -> str:
        await self._calls.begin("topic cursor")
        return self._server.cursor

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Publish what counted of a batch; the answer may be lost."""
        counted = await self._tables.find_counted(records)
        keys = [key_of(one.event) for one in counted if isinstance(one.event, Impression | Click)]
        await self._calls.commit(
            "topic", lambda: self._server.publish(keys, after=after, cursor=cursor), CursorMovedError
        )
        return BatchResult(counted=len(keys), repeated=len(records) - len(counted))
