"""Removes entries of erased users from the log, once all projections have applied them.

Their rows stay, without the user. A rebuild copies rows whose entries the log does not have.
"""

from typing import Final

from adloom.events.cursor_store import translate_database_errors
from adloom.events.log.stream import STREAM
from adloom.events.tables import erasure_store
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey, raise_if_away

ENTRIES_A_CALL: Final = 500


class ErasedEntries:
    """The entries that are to be removed."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self._pool = pool
        self._valkey = valkey

    async def sweep(self, applied: str) -> None:
        """Remove the entries up to one that all projections have applied."""
        with translate_database_errors("The database does not return entries of erased users"):
            async with self._pool.acquire() as connection:
                while True:
                    async with connection.transaction():
                        found = await erasure_store.take_entries(connection, applied, ENTRIES_A_CALL)
                        if found:
                            with raise_if_away():
                                await self._valkey.xdel(STREAM, *found)
                    if len(found) < ENTRIES_A_CALL:
                        return
