"""The cursor of the confirms, and which offers are charged, in PostgreSQL."""

from collections.abc import Collection
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import UUID

from adloom.budgets.confirms.offers import Offer
from adloom.events.cursor_store import BY_INDEX, move_cursor, read_cursor, translate_database_errors
from adloom.events.log.event import OCCURRED_AGE_MAX
from adloom.runtime.postgres import Pool, Record

# The condition is that of the index, word for word.
CHARGED: Final = """
    SELECT request_id, slot FROM money_entries WHERE request_id = ANY ($1::uuid[]) AND request_id IS NOT NULL
"""
CLICKED: Final = """
    SELECT click.request_id, click.slot, click.entry_ms, click.entry_seq, seen.entry_ms AS seen_ms, seen.entry_seq AS seen_seq
      FROM events.banner_clicks AS click
      LEFT JOIN LATERAL (
        SELECT entry_ms, entry_seq FROM events.banner_impressions
         WHERE request_id = click.request_id AND slot = click.slot AND occurred_at >= $2
           AND (marks && '{second_impression,second_click}') IS NOT TRUE
         ORDER BY entry_ms, entry_seq LIMIT 1
      ) AS seen ON true
     WHERE click.request_id = ANY ($1::uuid[]) AND click.occurred_at >= $2 AND click.is_valid
       AND (click.marks && '{second_impression,second_click}') IS NOT TRUE
"""

_database_errors: Final = partial(translate_database_errors, "The database does not say what is charged")


class ConfirmStore:
    """The cursor of the confirms, and what the tables know of offers."""

    def __init__(self, pool: Pool, *, projection: str) -> None:
        self._pool = pool
        self._projection = projection

    async def read_cursor(self) -> str:
        return await read_cursor(self._pool, self._projection)

    async def move(self, after: str, cursor: str) -> None:
        with _database_errors():
            await move_cursor(self._pool, self._projection, after=after, cursor=cursor)

    async def find_charged(self, offers: Collection[Offer]) -> set[Offer]:
        return set(await self._fetch_offers(CHARGED, offers))

    async def find_clicked(self, offers: Collection[Offer], *, since: int) -> dict[Offer, str]:
        """Return the offers with a valid click; `since` is the second of the earliest offer.

        Each comes with the entry from which on the tables count its click: its own, or that of the impression.
        """
        # A browser's clock may be wrong by as much as we accept.
        first = datetime.fromtimestamp(since, UTC) - OCCURRED_AGE_MAX
        found: dict[Offer, str] = {}
        for offer, row in (await self._fetch_offers(CLICKED, offers, first)).items():
            entry = max((row["entry_ms"], row["entry_seq"]), (row["seen_ms"] or 0, row["seen_seq"] or 0))
            found[offer] = f"{entry[0]}-{entry[1]}"
        return found

    async def _fetch_offers(
        self, statement: str, offers: Collection[Offer], *more: object
    ) -> dict[Offer, Record]:
        # In their order, which makes looking them up cheaper.
        requests = [UUID(int=number) for number in sorted({number for number, _ in offers})]
        with _database_errors():
            async with self._pool.acquire() as connection, connection.transaction(readonly=True):
                await connection.execute(BY_INDEX)
                rows = await connection.fetch(statement, requests, *more)
        return {offer: row for row in rows if (offer := (row["request_id"].int, row["slot"])) in offers}
