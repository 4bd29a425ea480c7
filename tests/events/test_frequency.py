"""Frequency counts: valid impressions of users, once each, per window, until the user is erased."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from adloom.core.errors import UnavailableError
from adloom.core.ids import BannerId
from adloom.events.followers.counted import CountedEntry
from adloom.events.followers.fence import split_batch
from adloom.events.frequency.counts import FrequencyCounters
from adloom.events.frequency.projection import PART_MAX, FrequencyProjection
from adloom.events.frequency.windows import Window
from adloom.events.log.event import Impression, Mark
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey, open_valkey
from tests.events.builders import BANNER, REQUEST, a_click, an_impression
from tests.events.catalog import cap_banners, insert_banner, insert_catalog
from tests.events.followed import NEXT_HOUR, OTHER_BANNER, OTHER_USER, USER, Followed, a_served

NOW = NEXT_HOUR


def seen(correlation_id: str, **fields: Any) -> Impression:
    attributes = {"user_id": USER, "occurred_at": NOW, "received_at": NOW, **fields}
    return an_impression(correlation_id, **attributes)


@pytest.fixture
async def followed(pool: Pool, valkey: Valkey) -> Followed:
    await insert_catalog(pool)
    await insert_banner(pool, OTHER_BANNER)
    await cap_banners(pool)
    return Followed(pool, valkey)


@pytest.fixture
def frequency(followed: Followed) -> FrequencyProjection:
    return FrequencyProjection(followed.valkey, followed.lookup, followed.find_capped)


@pytest.fixture
def counts(valkey: Valkey) -> FrequencyCounters:
    return FrequencyCounters(valkey)


async def shown(
    counts: FrequencyCounters, *, user: UUID = USER, banner: BannerId = BANNER, now: datetime = NOW
) -> dict[Window, int]:
    found = await counts.read_user(user, now)
    return {window: found[window].get(banner, 0) for window in Window}


def each(count: int) -> dict[Window, int]:
    return dict.fromkeys(Window, count)


# --- what counts


async def test_an_impression_counts_in_every_window_for_its_user_and_banner(
    followed: Followed, frequency: FrequencyProjection, counts: FrequencyCounters
) -> None:
    await followed.record(
        seen("a"), seen("b"), seen("c", banner_id=OTHER_BANNER), seen("d", user_id=OTHER_USER)
    )

    assert await followed.apply(frequency) == BatchResult(counted=4)

    assert await shown(counts) == each(2)
    assert await shown(counts, banner=OTHER_BANNER) == each(1)
    assert await shown(counts, user=OTHER_USER) == each(1)
    assert await shown(counts, user=OTHER_USER, banner=OTHER_BANNER) == each(0)


async def test_only_valid_impressions_of_users_count(
    followed: Followed, frequency: FrequencyProjection, counts: FrequencyCounters
) -> None:
    of_offer = {"request_id": REQUEST, "slot": 0}
    await followed.record(
        seen("crawled", marks=(Mark.CRAWLER,)),
        seen("late", marks=(Mark.OCCURRED_AT_REPLACED,)),
        seen("first", **of_offer),
        seen("second", **of_offer),
        seen("no user", user_id=None),
        a_click("click", user_id=USER),
        a_served(user_id=USER),
    )

    result = await followed.apply(frequency)

    assert result == BatchResult(counted=2)
    assert await shown(counts) == each(2)


async def test_a_repeated_report_counts_once(
    followed: Followed, frequency: FrequencyProjection, counts: FrequencyCounters
) -> None:
    await followed.record(seen("a"), seen("a"), seen("b"))
    await followed.apply(frequency)
    await followed.record(seen("a"), seen("b", occurred_at=NOW - timedelta(hours=23)))

    await followed.apply(frequency)

    assert await shown(counts) == each(2)


async def test_a_late_impression_counts_in_its_own_window_until_that_expires(
    followed: Followed, frequency: FrequencyProjection, counts: FrequencyCounters
) -> None:
    yesterday = NOW - timedelta(days=1)
    await followed.record(seen("now"), seen("late", occurred_at=yesterday))

    await followed.apply(frequency)

    assert (await shown(counts))[Window.HOUR] == 1
    assert (await shown(counts))[Window.DAY] == 1
    assert (await shown(counts))[Window.LIFETIME] == 2
    # Yesterday's hour has expired, and is not kept.
    assert (await shown(counts, now=yesterday))[Window.HOUR] == 0


async def test_every_bucket_expires(
    followed: Followed, frequency: FrequencyProjection, valkey: Valkey
) -> None:
    await followed.record(seen("a"), seen("b"))
    await followed.apply(frequency)

    keys = cast("list[bytes]", await valkey.keys(f"adloom:frequency:*:{USER}:*"))
    seconds = {key.split(b":")[4].decode(): await valkey.ttl(key) for key in keys}

    assert seconds.keys() == set(Window)
    assert 0 < seconds["hour"] <= 7_500
    assert seconds["hour"] <= seconds["day"] <= 90_300
    assert seconds["day"] <= seconds["week"] <= 8 * 86_400
    assert seconds["day"] <= seconds["month"] <= 32 * 86_400
    assert seconds["lifetime"] > 390 * 86_400


# --- reading


async def test_reading_a_user_returns_all_banners_of_every_window(
    followed: Followed, frequency: FrequencyProjection, counts: FrequencyCounters
) -> None:
    await followed.record(seen("a"), seen("b", banner_id=OTHER_BANNER))
    await followed.apply(frequency)

    assert (await counts.read_user(USER, NOW))[Window.MONTH] == {BANNER: 1, OTHER_BANNER: 1}
    assert await counts.read_user(OTHER_USER, NOW) == {window: {} for window in Window}


async def test_reading_without_valkey_raises_unavailable() -> None:
    async with open_valkey("redis://127.0.0.1:1") as away:
        with pytest.raises(UnavailableError):
            await FrequencyCounters(away).read_user(USER, NOW)


# --- once


async def test_a_commit_whose_answer_was_lost_counts_once(
    followed: Followed, frequency: FrequencyProjection, counts: FrequencyCounters
) -> None:
    await followed.record(seen("a"), seen("b"))
    records = await followed.records()
    after = await frequency.read_cursor()
    await frequency.commit(records, after=after, cursor=records[-1].entry_id)

    with pytest.raises(CursorMovedError):
        await frequency.commit(records, after=after, cursor=records[-1].entry_id)

    assert await frequency.read_cursor() == records[-1].entry_id
    assert await shown(counts) == each(2)


async def test_only_one_of_two_owners_counts_the_same_batch(
    followed: Followed, counts: FrequencyCounters
) -> None:
    await followed.record(*(seen(f"{number}") for number in range(20)))
    records = await followed.records()
    owners = [FrequencyProjection(followed.valkey, followed.lookup, followed.find_capped) for _ in range(2)]
    afters = [await owner.read_cursor() for owner in owners]
    await owners[0].commit(records[:10], after=afters[0], cursor=records[9].entry_id)

    with pytest.raises(CursorMovedError):
        await owners[1].commit(records[:15], after=afters[1], cursor=records[14].entry_id)
    await owners[1].commit(records[10:], after=await owners[1].read_cursor(), cursor=records[-1].entry_id)

    assert await shown(counts) == each(20)


async def test_a_batch_without_anything_to_count_moves_the_cursor(
    followed: Followed, frequency: FrequencyProjection
) -> None:
    await followed.record(a_click("a"))

    assert await followed.apply(frequency) == BatchResult()

    assert await frequency.read_cursor() == (await followed.records())[-1].entry_id


# --- in parts


def records_of(*entry_ids: int) -> list[DecodedEntry]:
    return [DecodedEntry(f"{number}-0", seen(f"{number}")) for number in entry_ids]


def test_a_large_batch_is_split_with_a_cursor_after_each_part() -> None:
    parts = list(split_batch(records_of(*range(11, 18)), after="10-0", cursor="20-0", part_max=3))

    assert [([record.entry_id for record in part], end) for part, end in parts] == [
        (["11-0", "12-0", "13-0"], "13-0"),
        (["14-0", "15-0", "16-0"], "16-0"),
        (["17-0"], "20-0"),
    ]
    assert list(split_batch([], after="10-0", cursor="20-0", part_max=3)) == [([], "20-0")]


def test_a_batch_is_not_split_after_a_redelivered_entry() -> None:
    parts = list(split_batch(records_of(11, 4, 5, 12, 13, 14), after="10-0", cursor="20-0", part_max=2))

    assert [([record.entry_id for record in part], end) for part, end in parts] == [
        (["11-0", "4-0", "5-0", "12-0"], "12-0"),
        (["13-0", "14-0"], "20-0"),
    ]


async def test_a_batch_interrupted_between_its_parts_continues_there(
    followed: Followed, counts: FrequencyCounters
) -> None:
    class LimitedLookup:
        """A look-up that succeeds three times."""

        times = 3

        async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
            self.times -= 1
            if self.times < 0:
                raise UnavailableError("The database is away.")
            return await followed.lookup.find_counted(records)

    await followed.record(*(seen(f"{number}") for number in range(PART_MAX * 5)))
    with pytest.raises(UnavailableError):
        await followed.apply(FrequencyProjection(followed.valkey, LimitedLookup(), followed.find_capped))
    assert await shown(counts) == each(PART_MAX * 3)

    await followed.apply(FrequencyProjection(followed.valkey, followed.lookup, followed.find_capped))

    assert await shown(counts) == each(PART_MAX * 5)


# --- erasure


async def test_an_erased_user_leaves_nothing_behind(
    followed: Followed, frequency: FrequencyProjection, counts: FrequencyCounters, valkey: Valkey
) -> None:
    await followed.record(seen("a"), seen("b", user_id=OTHER_USER))
    await followed.apply(frequency)
    await followed.erase(USER)

    assert await counts.erase_user(USER, NOW) == len(Window)

    assert await valkey.keys(f"adloom:frequency:*:{USER}:*") == []
    assert await shown(counts, user=OTHER_USER) == each(1)
    assert await counts.erase_user(USER, NOW) == 0


async def test_pending_impressions_of_an_erased_user_are_not_counted(
    followed: Followed, frequency: FrequencyProjection, counts: FrequencyCounters
) -> None:
    await followed.record(seen("a"))
    await followed.erase(USER)
    await counts.erase_user(USER, NOW)

    await followed.apply(frequency)

    assert await shown(counts) == each(0)


class ErasedMeanwhile:
    """A look-up after whose first answer a user is erased."""

    def __init__(self, followed: Followed, counts: FrequencyCounters) -> None:
        self._followed = followed
        self._counts = counts
        self.asked = 0

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        found = await self._followed.lookup.find_counted(records)
        self.asked += 1
        if self.asked == 1:
            await self._followed.erase(USER)
            await self._counts.erase_user(USER, NOW)
        return found


async def test_a_user_erased_after_the_look_up_of_a_batch_is_not_counted(
    followed: Followed, counts: FrequencyCounters
) -> None:
    lookup = ErasedMeanwhile(followed, counts)
    await followed.record(seen("a"), seen("b", user_id=OTHER_USER))

    result = await followed.apply(FrequencyProjection(followed.valkey, lookup, followed.find_capped))

    assert lookup.asked == 2
    assert result.counted == 1
    assert await shown(counts) == each(0)
    assert await shown(counts, user=OTHER_USER) == each(1)


async def test_only_banners_with_a_cap_are_counted(
    pool: Pool, followed: Followed, frequency: FrequencyProjection, counts: FrequencyCounters, valkey: Valkey
) -> None:
    await pool.execute("DELETE FROM frequency_caps")
    await followed.record(seen("before the cap"))
    await followed.apply(frequency)
    assert await valkey.keys("adloom:frequency:0:0*") == []

    await cap_banners(pool)
    await followed.record(seen("after it"), seen("of another", banner_id=OTHER_BANNER))
    await followed.apply(frequency)

    assert (await counts.read_user(USER, NOW))[Window.DAY] == {BANNER: 1, OTHER_BANNER: 1}
