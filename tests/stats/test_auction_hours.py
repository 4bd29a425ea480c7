"""Sums by hour: for any span they equal a recount of its auctions."""

import random
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from adloom.core.ids import RequestId
from adloom.events.log.event import AuctionEntry
from adloom.runtime import migrate
from adloom.runtime.listing import PageRequest
from adloom.runtime.postgres import Pool, open_pool
from adloom.stats.auctions import store
from adloom.stats.auctions.model import AuctionGrouping, AuctionQuestion
from tests.events.builders import a_win, an_auction
from tests.support.auctions import apply_auctions
from tests.support.builders import NOON
from tests.support.migrating import go_back_to

HOURS = 5
TYPES = ("feed", "story")
MICROSECOND = timedelta(microseconds=1)


def moments(chance: random.Random) -> list[datetime]:
    """Choose times in some hours, many of them just where an hour begins or ends."""
    begins = [NOON - timedelta(hours=hours) for hours in range(HOURS + 1)]
    others = [NOON - timedelta(seconds=chance.randrange(HOURS * 3_600)) for _ in range(60)]
    return [*begins, *(one - MICROSECOND for one in begins), *(one + MICROSECOND for one in begins), *others]


def a_market(chance: random.Random) -> list[AuctionEntry]:
    return [
        an_auction(
            RequestId(UUID(int=number)),
            held_at=moment,
            placement_type=chance.choice(TYPES),
            winner=a_win() if chance.random() < 0.7 else None,
            bid_count=chance.randrange(1, 5),
        )
        for number, moment in enumerate(moments(chance))
    ]


def is_asked(question: AuctionQuestion, auction: AuctionEntry) -> bool:
    return (
        (question.since is None or auction.held_at >= question.since)
        and (question.before is None or auction.held_at < question.before)
        and question.placement_type in {None, auction.placement_type}
    )


@pytest.mark.parametrize("seed", range(3))
async def test_the_sums_of_any_span_equal_a_recount_of_its_auctions(pool: Pool, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same in every run
    market = a_market(chance)
    await apply_auctions(pool, *market)
    ends = [None, *moments(chance)]

    for _ in range(60):
        question = AuctionQuestion(
            since=chance.choice(ends),
            before=chance.choice(ends),
            placement_type=chance.choice([None, *TYPES]),
        )
        asked = [one for one in market if is_asked(question, one)]
        await agree(pool, question, asked)


async def agree(pool: Pool, question: AuctionQuestion, asked: list[AuctionEntry]) -> None:
    async with pool.acquire() as connection:
        whole = await store.read_statistics(connection, question)
        listed = await store.read_page(connection, question, PageRequest(sort="auction_time", size=100))
        by_hour = await store.read_breakdown(connection, question, AuctionGrouping.HOUR)
        by_type = await store.read_breakdown(connection, question, AuctionGrouping.PLACEMENT_TYPE)
    wins = sum(one.winner is not None for one in asked)

    assert (whole.auctions, whole.wins, whole.bids) == (len(asked), wins, sum(one.bid_count for one in asked))
    assert whole.ecpm_sum == 9 * wins
    assert (listed.total_count, len(listed.items)) == (len(asked), len(asked))
    hours = [one.held_at.replace(minute=0, second=0, microsecond=0) for one in asked]
    assert {part.key: part.statistics.auctions for part in by_hour} == {
        hour: hours.count(hour) for hour in hours
    }
    types = [one.placement_type for one in asked]
    assert {part.key: part.statistics.auctions for part in by_type} == {
        kind: types.count(kind) for kind in types
    }


async def test_the_migration_counts_existing_auctions_by_hour(database_url: str) -> None:
    market = a_market(random.Random(4))  # noqa: S311 - the same in every run
    await go_back_to(database_url, "0010")
    async with open_pool(database_url, size_max=2) as pool:
        # Today's writer looks for columns that came later.
        await pool.execute(
            "ALTER TABLE erased_users ADD COLUMN user_digest bytea;"
            "ALTER TABLE auction.auctions ADD COLUMN page_url varchar(2048)"
        )
        await apply_auctions(pool, *market[::2])
        await pool.execute(
            "ALTER TABLE erased_users DROP COLUMN user_digest;"
            "ALTER TABLE auction.auctions DROP COLUMN page_url"
        )
        await migrate.upgrade(database_url)
        await apply_auctions(pool, *market[1::2])

        await agree(pool, AuctionQuestion(), market)
