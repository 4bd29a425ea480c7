"""Recently counted entries are kept in memory, and equal those of the event tables."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.followers.counted import KEPT_SECONDS, CountedEntry, RecentCounted
from adloom.events.followers.counted_store import CountedStore
from adloom.events.log.event import Mark
from adloom.events.ports import BatchResult
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import NOW, a_click, an_impression
from tests.events.catalog import insert_catalog
from tests.events.followed import OTHER_USER, USER, Followed, a_served


@pytest.fixture
async def followed(pool: Pool, valkey: Valkey) -> Followed:
    await insert_catalog(pool)
    return Followed(pool, valkey)


def counted(*numbers: int) -> list[CountedEntry]:
    return [CountedEntry(f"{number}-0", an_impression(f"{number}"), None) for number in numbers]


def describe(entries: Sequence[CountedEntry]) -> list[tuple[object, ...]]:
    """What followers read; the writer of the tables keeps its rows, which have more."""
    return [(one.entry_id, one.event, one.user_id, one.marks, one.is_valid) for one in entries]


async def apply(followed: Followed, recent_counted: RecentCounted) -> BatchResult:
    return await followed.apply(EventTables(followed.pool, recent_counted=recent_counted))


async def test_recent_entries_equal_those_of_the_tables(followed: Followed) -> None:
    recent_counted = RecentCounted()
    await followed.append(
        an_impression("a", user_id=USER),
        an_impression("a"),
        a_click("b"),
        an_impression("c", marks=(Mark.CRAWLER,)),
        a_served(user_id=USER),
        an_impression("d", user_id=OTHER_USER, received_at=NOW + timedelta(hours=1)),
        an_impression("e", banner_id=UUID(int=1)),
    )
    await apply(followed, recent_counted)
    await followed.append(an_impression("c"), an_impression("f", user_id=OTHER_USER))
    await apply(followed, recent_counted)
    records = await followed.records()

    known = await CountedStore(followed.pool, recent_counted).find_counted(records)

    assert describe(known) == describe(await followed.lookup.find_counted(records))
    assert len(known) == 6


async def test_a_user_erased_since_then_is_left_out(followed: Followed) -> None:
    recent_counted = RecentCounted()
    late = NOW + timedelta(hours=1)
    await followed.append(
        an_impression("a", user_id=USER),
        an_impression("b", user_id=OTHER_USER),
        a_served(user_id=USER),
        a_served(user_id=USER, served_at=late),
    )
    await apply(followed, recent_counted)
    await followed.erase(USER, at=NOW + timedelta(minutes=1))
    records = await followed.records()

    known = await CountedStore(followed.pool, recent_counted).find_counted(records)

    assert [one.user_id for one in known] == [None, OTHER_USER, None, USER]
    assert describe(known) == describe(await followed.lookup.find_counted(records))


async def test_impressions_without_a_user_need_no_database(followed: Followed, database_url: str) -> None:
    recent_counted = RecentCounted()
    await followed.append(an_impression("a"), an_impression("a"), an_impression("b"), a_served())
    await apply(followed, recent_counted)
    records = await followed.records()
    async with open_pool(database_url, size_max=1) as away:
        away.terminate()

        known = await CountedStore(away, recent_counted).find_counted(records)

        assert [one.entry_id for one in known] == [records[place].entry_id for place in (0, 2, 3)]
        with pytest.raises(UnavailableError):
            await CountedStore(away, RecentCounted()).find_counted(records)


async def test_a_click_that_became_valid_is_returned_as_valid(followed: Followed) -> None:
    recent_counted = RecentCounted()
    offer = {"request_id": UUID(int=7), "slot": 0}
    await followed.append(a_click("a", **offer))
    await apply(followed, recent_counted)
    await followed.append(an_impression("b", **offer))
    await apply(followed, recent_counted)

    known = await CountedStore(followed.pool, recent_counted).find_counted(await followed.records())

    assert [one.is_valid for one in known] == [True, True]


def test_entries_written_by_other_workers_are_not_covered() -> None:
    recent_counted = RecentCounted()
    recent_counted.add_batch("0-0", "2-0", counted(1, 2))
    recent_counted.add_batch("5-0", "6-0", counted(6))

    assert [recent_counted.covers(f"{number}-0") for number in range(1, 8)] == [False] * 5 + [True, False]
    assert recent_counted.get("2-0") is None
    assert recent_counted.get("6-0") == counted(6)[0]


def test_an_entry_that_did_not_count_is_covered() -> None:
    recent_counted = RecentCounted()
    recent_counted.add_batch("0-0", "3-0", counted(1, 3))

    assert recent_counted.get("2-0") is None
    assert recent_counted.covers("2-0")
    assert not recent_counted.covers("4-0")


@pytest.mark.parametrize("kept_max", [0, 1, 4, 10])
def test_the_oldest_entries_are_dropped(kept_max: int) -> None:
    recent_counted = RecentCounted(kept_max=kept_max)
    for number in range(1, 51):
        recent_counted.add_batch(f"{number - 1}-0", f"{number}-0", counted(number))

    known = [number for number in range(1, 51) if recent_counted.get(f"{number}-0")]

    assert known == [number for number in range(1, 51) if recent_counted.covers(f"{number}-0")]
    assert known == list(range(51 - len(known), 51))
    assert kept_max // 2 <= len(known) <= max(kept_max, 2)


def test_entries_that_were_added_a_while_ago_are_dropped() -> None:
    recent_counted = RecentCounted()
    for number, at in ((1, 100.0), (2, 100.0 + KEPT_SECONDS), (3, 101.0 + KEPT_SECONDS), (4, 300.0)):
        recent_counted.add_batch(f"{number - 1}-0", f"{number}-0", counted(number), at=at)

    known = [number for number in range(1, 5) if recent_counted.get(f"{number}-0")]

    assert known == [number for number in range(1, 5) if recent_counted.covers(f"{number}-0")] == [3, 4]
