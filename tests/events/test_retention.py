"""Retention of the log: the lag of its projections, and trimming only what all have applied."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.clock import ManualClock
from adloom.events.log.event import BEGINNING, encode_event, parse_entry_id
from adloom.events.log.event_group import USER_KEY
from adloom.events.log.stream import BEHIND_READ_BYTES_MAX, STREAM, EventLogSize, MemoryUse, ValkeyEventLog
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.events.projections.group import ConsumerGroup
from adloom.events.projections.retention import LogRetention, count_in_excess, trim_before
from adloom.events.projections.status import LogStatusReader
from adloom.runtime.valkey import Valkey
from tests.events.builders import NOW, an_impression

WEEK = timedelta(days=7)
# What looks like an event that names a user is an entry of its own.
LONE = USER_KEY


@pytest.fixture
def ledger(valkey: Valkey) -> ValkeyEventLog:
    return ValkeyEventLog(valkey)


async def appended(ledger: ValkeyEventLog, count: int) -> list[str]:
    """Append entries of one event, and return the ids of all."""
    for first in range(0, count, 1000):
        await ledger.append([LONE] * min(1000, count - first))
    return [entry.id for entry in await ledger.read(BEGINNING, count_max=100_000, wait_seconds=1)]


async def an_owner(valkey: Valkey) -> ConsumerGroup:
    group = ConsumerGroup(valkey, "test", consumer="one@host", incarnation="1")
    assert await group.acquire()
    return group


# --- lag


async def test_the_lag_behind_an_empty_log_is_zero(ledger: ValkeyEventLog) -> None:
    assert (await ledger.measure_lag("test", BEGINNING)).entries == 0


async def test_the_lag_is_the_number_of_entries_after_the_cursor(ledger: ValkeyEventLog) -> None:
    ids = await appended(ledger, 3)

    lag = await ledger.measure_lag("test", ids[0])

    assert lag.entries == 2
    assert 0 <= lag.seconds < 60
    assert (await ledger.measure_lag("test", "9999999999999-0")).seconds == 0


async def test_the_lag_is_exact_at_any_distance(ledger: ValkeyEventLog, valkey: Valkey) -> None:
    ids = await appended(ledger, 12_000)
    group = await an_owner(valkey)

    await group.read(BEGINNING, until=None, count_max=500)

    assert (await ledger.measure_lag("test", BEGINNING)).entries == 12_000
    assert (await ledger.measure_lag("test", ids[99])).entries == 11_900
    assert (await ledger.measure_lag("test", ids[499])).entries == 11_500
    assert (await ledger.measure_lag("test", ids[-1])).entries == 0


async def test_the_lag_of_a_cursor_ahead_of_its_group_is_its_own(
    ledger: ValkeyEventLog, valkey: Valkey
) -> None:
    ids = await appended(ledger, 10)
    await (await an_owner(valkey)).read(BEGINNING, until=None, count_max=3)

    assert (await ledger.measure_lag("test", ids[6])).entries == 3


async def test_the_lag_of_a_follower_is_counted_from_the_group_before_it(
    ledger: ValkeyEventLog, valkey: Valkey
) -> None:
    ids = await appended(ledger, 12_000)
    await (await an_owner(valkey)).read(BEGINNING, until=None, count_max=500)

    assert (await ledger.measure_lag("follower", ids[99])).entries == 11_900


async def test_the_lag_counts_a_group_of_events_as_an_entry(ledger: ValkeyEventLog) -> None:
    await ledger.append([encode_event(an_impression())] * 100)
    ids = [entry.id for entry in await ledger.read(BEGINNING, count_max=100, wait_seconds=1)]
    await ledger.append([LONE])

    lags = [await ledger.measure_lag("test", cursor) for cursor in (BEGINNING, ids[50], ids[-1])]

    assert [lag.entries for lag in lags] == [2, 2, 1]


async def test_a_lag_that_no_group_knows_is_counted_within_a_bound_of_bytes(ledger: ValkeyEventLog) -> None:
    await ledger.append([LONE + b"x" * 4_096] * 500)

    counted = (await ledger.measure_lag("test", BEGINNING)).entries

    # The server does nothing else while it reads them: it must not read all.
    assert BEHIND_READ_BYTES_MAX // 4_096 <= counted < 500


# --- trimming


def test_only_old_entries_that_all_projections_have_applied_are_trimmed() -> None:
    week_ago = int((NOW - WEEK).timestamp() * 1000)

    assert trim_before([], now=NOW, retention=WEEK) is None
    assert trim_before([f"{week_ago + 5}-3", f"{week_ago + 9}-1"], now=NOW, retention=WEEK) == f"{week_ago}-0"
    assert (
        trim_before([f"{week_ago - 5}-3", f"{week_ago + 9}-1"], now=NOW, retention=WEEK)
        == f"{week_ago - 5}-3"
    )
    assert trim_before([BEGINNING], now=NOW, retention=WEEK) == BEGINNING


@given(st.lists(st.tuples(st.integers(0, 2**41), st.integers(0, 2**20)), min_size=1))
def test_no_entry_after_a_cursor_is_trimmed(places: list[tuple[int, int]]) -> None:
    before = trim_before([f"{millis}-{number}" for millis, number in places], now=NOW, retention=WEEK)

    assert before is not None
    assert parse_entry_id(before) <= min(places)
    assert parse_entry_id(before) <= (int((NOW - WEEK).timestamp() * 1000), 0)


async def test_retention_measures_and_trims(ledger: ValkeyEventLog, valkey: Valkey) -> None:
    # Valkey trims whole blocks of a hundred entries.
    ids = await appended(ledger, 450)
    cursors: dict[str, str] = {"one": ids[-1], "as far": ids[-1], "other": BEGINNING}
    clock = ManualClock(datetime.now(UTC) + timedelta(days=8))

    async def read_cursors() -> Mapping[str, str]:
        return cursors

    upkeep = LogRetention(ledger, read_cursors, clock=clock)
    await DeadLetterQueue(valkey).add("one", "1-0", b"", reason="None.", tries=5, again=b"")

    await upkeep.check()
    assert {name: lag.entries for name, lag in upkeep.lags.items()} == {
        "one": 0,
        "as far": 0,
        "other": 450,
    }
    assert upkeep.trimmed == 0
    assert (upkeep.size.entries, upkeep.size.dead) == (450, 1)
    assert upkeep.size.memory_bytes > 0

    cursors["other"] = ids[-1]
    await upkeep.check()
    assert upkeep.trimmed >= 400
    assert await valkey.xlen(STREAM) == upkeep.size.entries == 450 - upkeep.trimmed


async def test_entries_within_the_retention_stay(ledger: ValkeyEventLog) -> None:
    ids = await appended(ledger, 450)

    async def read_cursors() -> Mapping[str, str]:
        return {"one": ids[-1]}

    upkeep = LogRetention(
        ledger,
        read_cursors,
        clock=ManualClock(datetime.now(UTC) + timedelta(days=2)),
        retention=timedelta(days=3),
    )
    await upkeep.check()

    assert upkeep.trimmed == 0


async def test_all_that_is_too_old_is_trimmed_however_much_came_since(
    ledger: ValkeyEventLog, valkey: Valkey
) -> None:
    """The server itself trims 10,000 entries a call at most: a busy log has more of them in a minute."""
    ids = await appended(ledger, 25_000)

    async def read_cursors() -> Mapping[str, str]:
        return {"one": ids[-1]}

    await LogRetention(ledger, read_cursors, clock=ManualClock(datetime.now(UTC) + timedelta(days=8))).check()

    assert await valkey.xlen(STREAM) <= 100


# --- memory


@given(
    entries=st.integers(0, 10**6),
    each=st.integers(1, 10_000),
    other=st.integers(0, 10**9),
    limit=st.integers(0, 10**9),
)
def test_the_log_gives_way_when_memory_is_short(entries: int, each: int, other: int, limit: int) -> None:
    size = EventLogSize(entries=entries, memory_bytes=entries * each)
    excess = count_in_excess(size, MemoryUse(entries * each + other, limit))

    left = (entries - excess) * each
    percent = limit // 100
    is_short = percent > 0 and (entries * each > 50 * percent or entries * each + other > 70 * percent)
    assert 0 <= excess <= entries
    assert (excess > 0) == (is_short and entries > 0)
    assert excess == entries or not is_short or (left <= 50 * percent and left + other <= 70 * percent)


async def test_a_log_whose_oldest_entries_are_large_is_not_larger_than_all_of_valkey(
    ledger: ValkeyEventLog, valkey: Valkey
) -> None:
    """Valkey estimates a stream by its first five blocks: after an outage these may be large groups from the spool."""
    await ledger.append([LONE + bytes(60_000)] * 10)
    await appended(ledger, 20_000)

    size = await ledger.measure_size()

    used = (await valkey.info("memory"))["used_memory_dataset"]
    assert 600_000 < size.memory_bytes < 1.1 * used


async def test_only_applied_entries_are_trimmed_for_memory(ledger: ValkeyEventLog) -> None:
    ids = await appended(ledger, 450)

    assert await ledger.trim(ids[99], 200) == 0, "blocks go whole"
    assert await ledger.trim(ids[250], 150) == 100
    assert await ledger.trim(ids[250], 10) == 100
    assert await ledger.trim(ids[250], 200) == 0

    left = await ledger.read(BEGINNING, count_max=1_000, wait_seconds=1)
    assert [entry.id for entry in left] == ids[200:]


# --- status


async def test_the_status_of_an_empty_log_can_be_read(valkey: Valkey) -> None:
    status = await LogStatusReader(valkey).read({"test": BEGINNING})

    assert (status.oldest, status.newest, status.size.entries) == (None, None, 0)
    [projection] = status.projections
    assert (projection.owner, projection.lag.entries, projection.taken) == (None, 0, 0)


async def test_the_status_names_the_oldest_event_and_those_that_fail_in_a_group(
    ledger: ValkeyEventLog, valkey: Valkey
) -> None:
    await ledger.append([encode_event(an_impression())] * 12)
    ids = [entry.id for entry in await ledger.read(BEGINNING, count_max=100, wait_seconds=1)]
    group = await an_owner(valkey)
    for place in (1, 4, 4, 5):
        await group.count_try(ids[place])

    status = await LogStatusReader(valkey).read({"test": ids[3]})

    assert (status.oldest, status.newest, status.size.entries) == (ids[0], ids[-1], 1)
    [test] = status.projections
    assert (test.lag.entries, test.failing, test.tries) == (1, 2, 2), "what is applied does not fail"


async def test_the_status_names_the_cursor_and_owner_of_each_projection(
    ledger: ValkeyEventLog, valkey: Valkey
) -> None:
    ids = await appended(ledger, 10)
    group = await an_owner(valkey)
    await group.read(BEGINNING, until=None, count_max=4)
    for _ in range(2):
        await group.count_try(ids[2])
    await DeadLetterQueue(valkey).add("test", "1-0", b"", reason="None.", tries=5, again=b"")

    status = await LogStatusReader(valkey).read({"test": ids[1], "other": ids[-1]})

    assert (status.oldest, status.newest) == (ids[0], ids[-1])
    test, other = status.projections
    assert (test.name, test.cursor, test.lag.entries, test.owner) == ("test", ids[1], 8, "one@host")
    assert (test.taken, test.failing, test.tries, test.dead) == (2, 1, 2, 1)
    assert (other.owner, other.lag.entries, other.taken, other.failing, other.dead) == (None, 0, 0, 0, 0)
