"""Recorded auctions, applied as the worker does."""

from adloom.core.clock import ManualClock
from adloom.events.auction_log.store import AuctionTables
from adloom.events.log.event import AuctionEntry
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON

KEPT_DAYS = 7


async def apply_auctions(pool: Pool, *auctions: AuctionEntry) -> BatchResult:
    """Apply auctions as the next batch of the log."""
    tables = AuctionTables(pool, clock=ManualClock(NOON), kept_days=KEPT_DAYS)
    after = await tables.read_cursor()
    millis = int(after.partition("-")[0]) + 1
    records = [DecodedEntry(f"{millis}-{number}", auction) for number, auction in enumerate(auctions)]
    return await tables.commit(records, after=after, cursor=records[-1].entry_id)
