"""Followers look up which entries the event tables have counted."""

from datetime import timedelta

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.followers.counted_store import CountedStore
from adloom.events.ports import DecodedEntry
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import NOW, a_click, an_impression
from tests.events.catalog import insert_catalog
from tests.events.followed import Followed, a_served


@pytest.fixture
async def followed(pool: Pool, valkey: Valkey) -> Followed:
    await insert_catalog(pool)
    return Followed(pool, valkey)


async def test_the_first_entry_of_a_correlation_id_counts(followed: Followed) -> None:
    await followed.record(an_impression("a"), an_impression("a"), a_click("a"), an_impression("b"))
    records = await followed.records()

    counted = await followed.lookup.find_counted(records)

    assert [one.entry_id for one in counted] == [records[place].entry_id for place in (0, 2, 3)]


async def test_looking_up_parts_of_a_batch_equals_looking_up_the_whole(followed: Followed) -> None:
    days = [NOW, NOW - timedelta(hours=13), NOW - timedelta(hours=23)]
    await followed.record(*(an_impression(f"{n % 7}", occurred_at=days[n % 3]) for n in range(21)))
    records = await followed.records()

    whole = await followed.lookup.find_counted(records)
    parts = [one for record in records for one in await followed.lookup.find_counted([record])]

    assert parts == whole
    assert len(whole) == 7


async def test_an_entry_that_is_not_in_the_tables_has_not_counted(followed: Followed) -> None:
    await followed.record(an_impression("a"))
    unstorable = DecodedEntry("9999999999999-0", an_impression("a\0b"))

    assert (
        await followed.lookup.find_counted([unstorable, DecodedEntry("9999999999999-1", an_impression("a"))])
        == []
    )


async def test_all_served_offers_count(followed: Followed) -> None:
    await followed.append(a_served(), a_served())

    counted = await followed.lookup.find_counted(await followed.records())

    assert len(counted) == 2


async def test_a_look_up_without_the_database_raises_unavailable(database_url: str) -> None:
    async with open_pool(database_url, size_max=1) as pool:
        lookup = CountedStore(pool)
        pool.terminate()

        with pytest.raises(UnavailableError):
            await lookup.find_counted([DecodedEntry("1-1", an_impression())])
