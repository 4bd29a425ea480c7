"""Fences out a worker that no longer leads the market.

Its actors keep no states of their own whose versions could tell: each worker that begins to lead counts a term, and
what is recorded in an earlier one is refused. A worker that was suspended for longer than its lock lasts finds out so
with its first write.
"""

from typing import Final

from adloom.runtime.actors.actor import FencedOutError
from adloom.runtime.postgres import Connection, Pool, unavailable_when_away

BEGIN: Final = """
    INSERT INTO market_terms AS it (term) VALUES (1) ON CONFLICT (is_only) DO UPDATE SET term = it.term + 1 RETURNING term
"""
# Shared: the next leader waits for writes that have begun, and reads what they have written.
CURRENT: Final = "SELECT term FROM market_terms FOR SHARE"


class MarketTerm:
    """The term of this worker, once it leads."""

    def __init__(self) -> None:
        self._term = 0

    async def begin(self, pool: Pool) -> None:
        with unavailable_when_away("No term of the market can begin"):
            self._term = int(await pool.fetchval(BEGIN))

    async def check(self, connection: Connection) -> None:
        """Raise FencedOutError if another worker leads by now; in the transaction of what is written."""
        current = await connection.fetchval(CURRENT)
        if current != self._term:
            raise FencedOutError(f"Term {current} of the market has begun; this worker's was {self._term}.")
