"""The projection `auctions`: each auction once, with its bids as the API shows them, and without erased users."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from adloom.core.clock import ManualClock, SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import NO_USER, digest_user
from adloom.core.money import Micros
from adloom.events.auction_log.row import build_rows
from adloom.events.auction_log.store import AuctionTables
from adloom.events.log.auction_bids import LOST, REMOVED
from adloom.events.log.event import AuctionEntry, Click, Impression, RemovedCandidates
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry, PoisonEntryError
from adloom.events.tables.partition_store import AUCTION_PARTITIONS, PartitionStore, ensure_days
from adloom.events.tables.partitions import PartitionMaintenance, RetentionPeriods
from adloom.runtime.postgres import Pool
from tests.events.builders import (
    BANNER,
    CAMPAIGN,
    NOW,
    OTHER_BANNER,
    PLACEMENT,
    REQUEST,
    THIRD_BANNER,
    USER,
    a_bid,
    a_click,
    an_auction,
    an_impression,
)
from tests.events.test_partitions import FakeLedger

KEPT_DAYS = 7
DAY = timedelta(days=1)


class AuctionLogSystem:
    """Gives auctions entry ids in order, and applies them batch by batch."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.clock = ManualClock(NOW)
        self.tables = AuctionTables(pool, clock=self.clock, kept_days=KEPT_DAYS)
        self._sequence = 0

    async def apply(self, *happenings: AuctionEntry | Impression | Click) -> BatchResult:
        after = await self.tables.read_cursor()
        records = [
            DecodedEntry(f"1-{self._sequence + number}", one)
            for number, one in enumerate(happenings, start=1)
        ]
        self._sequence += len(records)
        return await self.tables.commit(records, after=after, cursor=records[-1].entry_id)

    async def rows(self) -> list[dict[str, Any]]:
        rows = await self.pool.fetch("SELECT * FROM auction.auctions ORDER BY auction_time, id")
        return [dict(row) for row in rows]

    async def one(self) -> dict[str, Any]:
        [row] = await self.rows()
        return row


@pytest.fixture
def system(pool: Pool) -> AuctionLogSystem:
    return AuctionLogSystem(pool)


async def test_an_auction_without_a_user_has_no_user_id(system: AuctionLogSystem) -> None:
    await system.apply(an_auction(user_id=NO_USER))

    row = await system.one()
    assert (row["user_id"], row["context"]) == (None, {"country": "FR"})


def test_equal_bids_are_rendered_once() -> None:
    """Visitors of one kind get the same auction, and some auctions have hundreds of bids."""
    alike = [an_auction(uuid4(), user_id=uuid4()) for _ in range(2)]
    other = an_auction(uuid4(), removed=(RemovedCandidates("schedule", 1),))

    one, again, another = build_rows([*alike, other], erased_at={}, first_day=NOW.date())

    assert one.bids is again.bids
    assert one.user_id != again.user_id
    assert ("targeting:country" in one.bids, "schedule" in another.bids) == (True, True)


async def test_an_auction_becomes_a_row_with_all_its_bids(system: AuctionLogSystem) -> None:
    assert await system.apply(an_auction()) == BatchResult(counted=1)

    row = await system.one()
    bids = row.pop("bids")
    assert row == {
        "id": REQUEST,
        "user_id": USER,
        "placement_type": "feed",
        "placement_id": PLACEMENT,
        "auction_time": NOW,
        "context": {"country": "FR"},
        "scoring": "heuristic",
        "scoring_version": 0,
        "floor_cpm": Decimal(0),
        "bid_count": 2,
        "removed": {"targeting:country": 1},
        "campaign_ids": [CAMPAIGN, CAMPAIGN],
        "winning_ad_id": BANNER,
        "winning_campaign_id": CAMPAIGN,
        "final_price": Decimal("7.01"),
        "winning_ecpm": Decimal(9),
        "charge": Decimal("7.01"),
        "page_url": None,
    }
    assert [(bid["adId"], bid["outcome"], bid.get("removedBy")) for bid in bids] == [
        (str(BANNER), "won", None),
        (str(OTHER_BANNER), "lost", None),
        (str(THIRD_BANNER), "removed", "targeting:country"),
    ]
    assert bids[0] == {
        "adId": str(BANNER),
        "campaignId": str(CAMPAIGN),
        "bid": 9,
        "bidType": "cpm",
        "bidAmount": 450,
        "predictedCtr": 0.02,
        "qualityScore": 1,
        "ecpm": 9,
        "outcome": "won",
    }


async def test_a_bid_per_click_is_shown_per_click_and_per_thousand_clicks(system: AuctionLogSystem) -> None:
    bid = a_bid(bid=500_050, is_per_click=True, ctr=18_000_000, quality=11_000, ecpm=9_900_990, outcome=LOST)

    await system.apply(an_auction(bids=bid))

    [shown] = (await system.one())["bids"]
    # Rounded half to even at four places, as all amounts are.
    assert (shown["bid"], shown["bidType"], shown["bidAmount"]) == (0.5, "cpc", 500.05)
    assert (shown["predictedCtr"], shown["qualityScore"], shown["ecpm"]) == (0.018, 1.1, 9.901)


async def test_a_cpm_bid_with_a_zero_click_rate_has_no_price_per_click(system: AuctionLogSystem) -> None:
    await system.apply(an_auction(bids=a_bid(ctr=0)))

    assert (await system.one())["bids"][0]["bidAmount"] is None


async def test_an_unsold_auction_has_no_winner_and_no_price(system: AuctionLogSystem) -> None:
    await system.apply(
        an_auction(
            winner=None,
            placement_id=PLACEMENT,
            floor=Micros(10_000_000),
            bid_count=0,
            bids=a_bid(outcome=REMOVED),
            removed=(RemovedCandidates("floor", 1),),
        )
    )

    row = await system.one()
    assert {row[name] for name in ("winning_ad_id", "winning_campaign_id", "final_price", "charge")} == {None}
    assert (row["placement_id"], row["floor_cpm"], row["campaign_ids"]) == (PLACEMENT, Decimal(10), [])
    assert row["bids"][0]["removedBy"] == "floor"


async def test_an_auction_that_is_recorded_twice_is_one_row(system: AuctionLogSystem) -> None:
    other = an_auction(uuid4())

    assert await system.apply(an_auction(), an_auction(), other) == BatchResult(counted=2, repeated=1)
    assert await system.apply(an_auction()) == BatchResult(repeated=1)

    assert len(await system.rows()) == 2
    assert await system.pool.fetchval("SELECT auctions FROM auction.hours") == 2


async def test_other_events_only_move_the_cursor(system: AuctionLogSystem) -> None:
    assert await system.apply(an_impression(), a_click()) == BatchResult()

    assert await system.tables.read_cursor() == "1-2"
    assert await system.rows() == []


async def test_a_batch_from_an_old_cursor_changes_nothing(system: AuctionLogSystem) -> None:
    await system.apply(an_auction())

    with pytest.raises(CursorMovedError):
        await system.tables.commit([DecodedEntry("1-9", an_auction(uuid4()))], after="0-0", cursor="1-9")

    assert len(await system.rows()) == 1


async def test_an_auction_past_its_retention_is_skipped(system: AuctionLogSystem) -> None:
    old = an_auction(uuid4(), held_at=NOW - (KEPT_DAYS + 1) * DAY)
    last = an_auction(held_at=NOW - KEPT_DAYS * DAY)

    assert await system.apply(old, last) == BatchResult(counted=1, dropped=1)

    assert (await system.one())["id"] == REQUEST


async def test_events_before_an_erasure_are_applied_without_the_user(
    system: AuctionLogSystem, pool: Pool
) -> None:
    await pool.execute(
        "INSERT INTO erased_users (user_digest, erased_at) VALUES ($1, $2)", digest_user(USER), NOW
    )

    await system.apply(an_auction(), an_auction(uuid4(), held_at=NOW + timedelta(seconds=1)))

    before, after = await system.rows()
    assert (before["user_id"], before["context"]) == (None, None)
    assert (after["user_id"], after["context"]) == (USER, {"country": "FR"})


async def test_characters_that_the_database_refuses_are_left_out(system: AuctionLogSystem) -> None:
    await system.apply(an_auction(context={"seg\0ment": "high\0-intent"}, placement_type="fe\0ed"))

    row = await system.one()
    assert (row["context"], row["placement_type"]) == ({"segment": "high-intent"}, "feed")


async def test_an_auction_that_fits_no_row_is_a_poison_entry(system: AuctionLogSystem) -> None:
    with pytest.raises(PoisonEntryError):
        await system.apply(an_auction(bid_count=-1))
    with pytest.raises(PoisonEntryError):
        await system.apply(an_auction(bids=a_bid()[:-1]))


async def test_partitions_are_created_ahead_and_on_demand(system: AuctionLogSystem, pool: Pool) -> None:
    upkeep = an_upkeep(pool, now=NOW)

    await upkeep.check()
    await system.apply(an_auction(held_at=NOW - 5 * DAY))

    assert upkeep.made == 9
    assert NOW.date() - 5 * DAY in await attached(pool)


async def test_only_partitions_older_than_the_retention_are_dropped(pool: Pool) -> None:
    now = SystemClock().now()  # The database's own clock is checked too before a partition is dropped.
    days = [now.date() - timedelta(days=age) for age in (KEPT_DAYS + 2, KEPT_DAYS + 1, KEPT_DAYS)]
    async with pool.acquire() as connection:
        await ensure_days(connection, AUCTION_PARTITIONS, days)
    late = AuctionTables(pool, clock=ManualClock(now - 2 * DAY), kept_days=KEPT_DAYS)
    held = [an_auction(uuid4(), held_at=datetime.combine(day, time.max, UTC)) for day in days]
    await late.commit(
        [DecodedEntry("1-1", one) for one in held], after=await late.read_cursor(), cursor="1-1"
    )
    upkeep = an_upkeep(pool, now=now)

    await upkeep.check()

    assert upkeep.dropped == 2
    hours = await pool.fetch("SELECT hour, auctions FROM auction.hours")
    assert [(row["hour"].date(), row["auctions"]) for row in hours] == [(days[2], 1)]
    kept = await attached(pool)
    assert (days[2] in kept, days[1] in kept) == (True, False)


async def test_a_partition_that_is_being_dropped_makes_the_batch_wait(
    system: AuctionLogSystem, pool: Pool
) -> None:
    await system.apply(an_auction())
    await pool.execute(
        "ALTER TABLE auction.auctions DETACH PARTITION " + f"auction.auctions_{NOW.date():%Y%m%d}"
    )

    with pytest.raises(UnavailableError):
        await system.apply(an_auction(uuid4()))


def an_upkeep(pool: Pool, *, now: datetime) -> PartitionMaintenance:
    return PartitionMaintenance(
        PartitionStore(pool, AUCTION_PARTITIONS),
        FakeLedger(),
        clock=ManualClock(now),
        retention=RetentionPeriods(event_days=KEPT_DAYS, ledger_days=7),
    )


async def attached(pool: Pool) -> list[Any]:
    rows = await pool.fetch(
        """
        SELECT to_date(right(relname, 8), 'YYYYMMDD') FROM pg_inherits JOIN pg_class ON oid = inhrelid
         WHERE inhparent = 'auction.auctions'::regclass
        """
    )
    return [row[0] for row in rows]
