"""The projection `auctions` in PostgreSQL: each auction once, in the transaction that moves the cursor."""

import contextlib
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing
from datetime import UTC, timedelta
from functools import partial
from typing import Final

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.auction_log.row import AuctionRow, build_rows
from adloom.events.auction_log.side_stream import AuctionSideStream
from adloom.events.cursor_store import (
    ROW_ERRORS,
    find_erased_users,
    lock_cursor,
    move_cursor,
    read_cursor,
    translate_database_errors,
)
from adloom.events.log.event import AuctionEntry, Served, UnreadableEntryError, Unsold
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.events.tables.partition_store import AUCTION_PARTITIONS, ensure_days
from adloom.runtime.postgres import Connection, Pool, parse_row_count

AUCTIONS: Final = "auctions"
# The worker does nothing else while rows are built: some hundredths of a second.
ROWS_AT_ONCE: Final = 500
BID_BYTES_AT_ONCE: Final = 2**18

INSERT: Final = """
    INSERT INTO auction.auctions (
        id, user_id, placement_type, placement_id, auction_time, context, scoring, scoring_version, floor_cpm,
        bid_count, bids, removed, campaign_ids, winning_ad_id, winning_campaign_id, final_price, winning_ecpm, charge,
        page_url
    )
    SELECT id, user_id, placement_type, placement_id, auction_time, context::jsonb, scoring, scoring_version,
           floor_cpm, bid_count, bids::jsonb, removed::jsonb, campaign_ids::uuid[], winning_ad_id,
           winning_campaign_id, final_price, winning_ecpm, charge, page_url
      FROM unnest(
          $1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::timestamptz[], $6::text[], $7::text[], $8::bigint[],
          $9::numeric[], $10::integer[], $11::text[], $12::text[], $13::text[], $14::uuid[], $15::uuid[],
          $16::numeric[], $17::numeric[], $18::numeric[], $19::text[]
      ) AS held (
          id, user_id, placement_type, placement_id, auction_time, context, scoring, scoring_version, floor_cpm,
          bid_count, bids, removed, campaign_ids, winning_ad_id, winning_campaign_id, final_price, winning_ecpm, charge,
          page_url
      )
    ON CONFLICT (id, auction_time) DO NOTHING
"""

# Entries whose auctions are in the side stream.
_RECORDED: Final = (Served, Unsold)

_database_errors: Final = partial(
    translate_database_errors,
    "The database does not take the auctions",
    poison=(*ROW_ERRORS, UnreadableEntryError),
)


class AuctionTables:
    """The projection `auctions`; an auction past its retention is skipped.

    Auctions are in the side stream, which is trimmed once they are rows; older ones are in the log itself.
    """

    def __init__(
        self, pool: Pool, side_stream: AuctionSideStream | None = None, *, clock: Clock, kept_days: int
    ) -> None:
        self._pool = pool
        self._side_stream = side_stream
        self._clock = clock
        self._kept = timedelta(days=kept_days)

    async def read_cursor(self) -> str:
        return await read_cursor(self._pool, AUCTIONS)

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Insert the new auctions and move the cursor, in one transaction."""
        with _database_errors():
            async with aclosing(self._read_pieces(records, after=after, cursor=cursor)) as pieces:
                first = await anext(pieces, None)
                if first is None:
                    await move_cursor(self._pool, AUCTIONS, after=after, cursor=cursor)
                    return BatchResult()
                async with self._pool.acquire() as connection, connection.transaction():
                    await lock_cursor(connection, AUCTIONS, after=after)
                    result = await self._insert_piece(connection, first)
                    async for piece in pieces:
                        result += await self._insert_piece(connection, piece)
                    await move_cursor(connection, AUCTIONS, after=after, cursor=cursor)
        await self._trim(cursor)
        return result

    async def _read_pieces(
        self, records: Sequence[DecodedEntry], *, after: str, cursor: str
    ) -> AsyncGenerator[Sequence[AuctionEntry]]:
        """Yield the auctions of a batch in pieces that may be written at once; none is empty."""
        # Most batches have none. To find out that an event is not of a class takes longer than to list all classes.
        if {type(one.event) for one in records}.isdisjoint((AuctionEntry, *_RECORDED)):
            return
        for piece in split_pieces([one.event for one in records if isinstance(one.event, AuctionEntry)]):
            yield piece
        entry_ids = {one.entry_id for one in records if isinstance(one.event, _RECORDED)}
        if self._side_stream is None or not entry_ids:
            return
        async with aclosing(self._side_stream.read(entry_ids, after=after, last=cursor)) as pages:
            async for page in pages:
                for piece in split_pieces(page):
                    yield piece

    async def _insert_piece(self, connection: Connection, auctions: Sequence[AuctionEntry]) -> BatchResult:
        erased_at = await find_erased_users(connection, {auction.user_id for auction in auctions})
        first_day = (self._clock.now().astimezone(UTC) - self._kept).date()
        rows = build_rows(auctions, erased_at=erased_at, first_day=first_day)
        await ensure_days(connection, AUCTION_PARTITIONS, {row.auction_time.date() for row in rows})
        inserted = await _insert_rows(connection, rows) if rows else 0
        return BatchResult(counted=inserted, repeated=len(rows) - inserted, dropped=len(auctions) - len(rows))

    async def _trim(self, cursor: str) -> None:
        if self._side_stream is not None:
            with contextlib.suppress(UnavailableError):  # The batch is in; the next one trims this one, too.
                await self._side_stream.trim(cursor)


def split_pieces(auctions: Sequence[AuctionEntry]) -> Generator[Sequence[AuctionEntry]]:
    """Split auctions so that no piece takes long."""
    start = size = 0
    for place, auction in enumerate(auctions):
        if place - start == ROWS_AT_ONCE or (size and size + len(auction.bids) > BID_BYTES_AT_ONCE):
            yield auctions[start:place]
            start, size = place, 0
        size += len(auction.bids)
    if start < len(auctions):
        yield auctions[start:]


async def _insert_rows(connection: Connection, rows: Sequence[AuctionRow]) -> int:
    return parse_row_count(await connection.execute(INSERT, *map(list, zip(*rows, strict=True))))
