"""A projection's consumer group: one owner at a time, no entry left out, even if the group is lost."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import UnavailableError
from adloom.events.log.event import BEGINNING, LogEntry, parse_entry_id
from adloom.events.log.stream import STREAM, ValkeyEventLog, unpack_row
from adloom.events.projections.group import (
    AGAIN_MAX,
    CONSUMER_KEPT,
    ConsumerGroup,
    count_readable,
    lock_key,
    tries_key,
)
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.locks import HeldLocks
from adloom.runtime.ports import find_port
from adloom.runtime.valkey import Valkey, open_valkey

LEASE = timedelta(milliseconds=300)


def a_group(  # noqa: PLR0913 - a test names what it is about
    valkey: Valkey,
    consumer: str = "one@host",
    *,
    incarnation: str = "1",
    projection: str = "test",
    is_first: bool = False,
    lease: timedelta = timedelta(seconds=30),
    consumer_kept: timedelta = CONSUMER_KEPT,
) -> ConsumerGroup:
    return ConsumerGroup(
        valkey,
        projection,
        consumer=consumer,
        incarnation=incarnation,
        is_first=is_first,
        lease=lease,
        consumer_kept=consumer_kept,
    )


async def an_owner(
    valkey: Valkey, consumer: str = "one@host", *, incarnation: str = "1", is_first: bool = False
) -> ConsumerGroup:
    """Return a group that is the owner, replacing any other."""
    await valkey.delete(lock_key("test"))
    group = a_group(valkey, consumer, incarnation=incarnation, is_first=is_first)
    assert await group.acquire()
    return group


async def append(valkey: Valkey, count: int, *, first: int = 0) -> None:
    await ValkeyEventLog(valkey).append([b"%d" % number for number in range(first, first + count)])


async def taken(
    group: ConsumerGroup, after: str = BEGINNING, *, until: str | None = None, count_max: int = 100
) -> Sequence[LogEntry]:
    entries = await group.read(after, until=until, count_max=count_max)
    assert entries is not None
    return entries


def numbers(entries: Sequence[LogEntry]) -> list[int]:
    return [int(entry.data) for entry in entries]


# --- the lease


async def test_a_projection_has_one_owner_at_a_time(valkey: Valkey) -> None:
    one, other = a_group(valkey, "one@host"), a_group(valkey, "other@host")

    assert await one.acquire()
    assert not await other.acquire()
    assert await one.acquire()
    assert await other.read(BEGINNING, until=None, count_max=10) is None


async def test_who_reads_that_another_is_the_owner_does_not_trust_its_last_renewal(valkey: Valkey) -> None:
    group = ConsumerGroup(
        valkey, "test", consumer="one@host", incarnation="1", held_locks=HeldLocks(renewed_seconds=60)
    )
    assert await group.acquire()
    await valkey.set(lock_key("test"), "other@host 1")

    assert await group.read(BEGINNING, until=None, count_max=10) is None
    assert not await group.acquire()


async def test_each_projection_has_its_own_owner(valkey: Valkey) -> None:
    assert await a_group(valkey, "one@host").acquire()
    assert await a_group(valkey, "other@host", projection="other").acquire()


async def test_an_owner_without_a_heartbeat_is_replaced_after_its_lease(valkey: Valkey) -> None:
    one, other = a_group(valkey, "one@host", lease=LEASE), a_group(valkey, "other@host", lease=LEASE)
    loop = asyncio.get_running_loop()
    began_at = loop.time()
    assert await one.acquire()

    async with asyncio.timeout(60):
        while not await other.acquire():  # noqa: ASYNC110 - it ends in Valkey
            await asyncio.sleep(0.01)

    assert loop.time() - began_at > LEASE.total_seconds() * 0.8
    assert not await one.acquire()
    assert await one.read(BEGINNING, until=None, count_max=10) is None


async def test_an_owner_releases_only_its_own_lock(valkey: Valkey) -> None:
    one, other = a_group(valkey, "one@host"), a_group(valkey, "other@host")
    await one.acquire()

    await other.release()
    assert not await other.acquire()
    await one.release()
    assert await other.acquire()


async def test_a_restarted_worker_takes_its_own_lock_back_once(valkey: Valkey) -> None:
    first, second = a_group(valkey, incarnation="1"), a_group(valkey, incarnation="2")
    assert await first.acquire()

    assert await second.acquire()
    assert not await first.acquire()
    assert await second.acquire()


async def test_a_consumer_name_that_is_a_prefix_of_another_is_a_different_consumer(valkey: Valkey) -> None:
    assert await a_group(valkey, "worker@host-1").acquire()
    assert not await a_group(valkey, "worker@host").acquire()


async def test_stale_consumers_are_dropped(valkey: Valkey) -> None:
    await append(valkey, 1)
    [entry] = await taken(await an_owner(valkey, "gone@host"))
    # As an older version did: an entry that it tried is pending.
    await valkey.xclaim(STREAM, "test", "gone@host", 0, [entry.id], force=True)
    await asyncio.sleep(0.05)
    await valkey.delete(lock_key("test"))

    kept = timedelta(milliseconds=40)
    await a_group(valkey, "next@host", consumer_kept=kept).acquire()

    assert await valkey.xinfo_consumers(STREAM, "test") == []


async def test_a_consumer_that_was_just_there_is_kept(valkey: Valkey) -> None:
    await append(valkey, 1)
    await taken(await an_owner(valkey, "busy@host"))
    await valkey.delete(lock_key("test"))

    await a_group(valkey, "next@host").acquire()

    assert [one["name"] for one in await valkey.xinfo_consumers(STREAM, "test")] == [b"busy@host"]


# --- reading


async def test_entries_are_read_in_order_and_once(valkey: Valkey) -> None:
    group = await an_owner(valkey)
    await append(valkey, 5)

    first = await taken(group, count_max=2)
    second = await taken(group, first[-1].id, count_max=2)
    third = await taken(group, second[-1].id, count_max=2)

    assert [numbers(first), numbers(second), numbers(third)] == [[0, 1], [2, 3], [4]]
    assert await taken(group, third[-1].id) == []


async def test_entries_read_and_not_applied_are_read_again(valkey: Valkey) -> None:
    group = await an_owner(valkey)
    await append(valkey, 3)
    await taken(group)

    assert numbers(await taken(group)) == [0, 1, 2]


async def test_the_next_worker_reads_a_dead_workers_entries_from_the_cursor(valkey: Valkey) -> None:
    await append(valkey, 5)
    dead = await an_owner(valkey, "dead@host")
    applied = (await taken(dead))[1].id

    living = await an_owner(valkey, "living@host")

    assert numbers(await taken(living, applied)) == [2, 3, 4]


async def test_a_replaced_worker_cannot_take_entries_from_the_owner(valkey: Valkey) -> None:
    zombie = await an_owner(valkey, "zombie@host")
    await append(valkey, 3)
    owner = await an_owner(valkey, "owner@host")
    first = await taken(owner)
    await append(valkey, 3, first=3)

    assert await zombie.read(first[-1].id, until=None, count_max=2) is None
    assert numbers(await taken(owner, first[-1].id)) == [3, 4, 5]


async def test_a_lost_group_is_created_again_at_the_cursor(valkey: Valkey) -> None:
    group = await an_owner(valkey)
    await append(valkey, 4)
    cursor = (await taken(group))[1].id
    await valkey.xgroup_destroy(STREAM, "test")

    assert numbers(await taken(group, cursor)) == [2, 3]


@pytest.mark.parametrize("place", ["0-0", "$"])
async def test_a_group_restored_at_another_position_is_set_to_the_cursor(valkey: Valkey, place: str) -> None:
    group = await an_owner(valkey)
    await append(valkey, 4)
    cursor = (await taken(group))[1].id
    await valkey.xgroup_setid(STREAM, "test", place)

    assert numbers(await taken(group, cursor)) == [2, 3]


async def test_a_cursor_restored_from_an_older_database_reads_its_entries_again(valkey: Valkey) -> None:
    group = await an_owner(valkey)
    await append(valkey, 4)
    entries = await taken(group)
    await taken(group, entries[-1].id)

    assert numbers(await taken(group, entries[0].id)) == [1, 2, 3]


async def test_reading_continues_with_new_entries_after_the_log_was_lost(valkey: Valkey) -> None:
    group = await an_owner(valkey)
    await append(valkey, 4)
    cursor = (await taken(group))[-1].id
    await valkey.flushall()

    assert await group.read(cursor, until=None, count_max=9) is None
    assert await group.acquire()
    assert await taken(group, cursor) == []
    await append(valkey, 2, first=4)
    assert numbers(await taken(group, cursor)) == [4, 5]


async def test_a_log_that_lost_its_newest_entries_does_not_reuse_their_ids(valkey: Valkey) -> None:
    group = await an_owner(valkey)
    await valkey.xadd(STREAM, {"e": "0"}, id="5-1")
    tomorrow = f"{(await all_entries(valkey))[-1].id.partition('-')[0]}0000000000-7"

    assert await taken(group, tomorrow) == []
    await append(valkey, 2, first=1)

    assert numbers(await taken(group, tomorrow)) == [1, 2]


async def lose_newest(valkey: Valkey, group: ConsumerGroup) -> str:
    """Let a group read entries that are lost then, as if a replica took over, with a clock behind; return the cursor."""
    ahead = int(time.time() * 1000) + 3_600_000
    await valkey.xadd(STREAM, {"e": "0"}, id=f"{ahead}-0")
    known = (await taken(group))[-1].id
    await valkey.xadd(STREAM, {"e": "1"}, id=f"{ahead + 60_000}-0")
    cursor = (await taken(group, known))[-1].id
    await valkey.delete(STREAM)
    await valkey.xadd(STREAM, {"e": "0"}, id=known)
    await valkey.xgroup_create(STREAM, "test", known)
    return cursor


@pytest.mark.parametrize("is_first", [True, False])
async def test_entries_of_a_server_whose_clock_is_behind_the_cursor_are_appended_again(
    valkey: Valkey, *, is_first: bool
) -> None:
    group = await an_owner(valkey, is_first=is_first)
    cursor = await lose_newest(valkey, group)
    await append(valkey, 2, first=2)
    await append(valkey, 6, first=4)

    read = [*await taken(group, cursor)]
    await append(valkey, 1, first=10)
    read += await taken(group, read[-1].id if read else cursor)

    assert numbers(read) == [*range(2, 10), 10] if is_first else [10]
    assert await valkey.xlen(STREAM) == (1 + 3 + 3 + 1 if is_first else 1 + 3 + 1)
    assert await taken(group, read[-1].id) == []


async def test_many_entries_below_the_cursor_are_appended_again_in_parts(valkey: Valkey) -> None:
    group = await an_owner(valkey, is_first=True)
    cursor = await lose_newest(valkey, group)
    for number in range(2, AGAIN_MAX + 10):
        await valkey.xadd(STREAM, {"e": str(number)})

    assert numbers(await taken(group, cursor, count_max=2_000)) == list(range(2, AGAIN_MAX + 10))


async def test_entries_beyond_the_limit_are_returned_later(valkey: Valkey) -> None:
    group = await an_owner(valkey)
    await append(valkey, 12)
    ids = [entry.id for entry in await all_entries(valkey)]

    assert await taken(group, until=BEGINNING) == []
    assert numbers(await taken(group, until=ids[1])) == [0, 1]
    assert await taken(group, ids[1], until=ids[1]) == []
    assert numbers(await taken(group, ids[1], until=ids[4], count_max=2)) == [2, 3]
    assert numbers(await taken(group, ids[1], until=ids[3])) == [2, 3], "it was not applied"
    assert numbers(await taken(group, ids[3], until=None)) == list(range(4, 12))


async def test_large_entries_fill_a_batch_as_small_ones_do(valkey: Valkey) -> None:
    group = await an_owner(valkey)
    bodies = [b"%04d" % number + bytes(20_000) for number in range(300)]
    for start in range(0, 300, 50):
        await ValkeyEventLog(valkey).append(bodies[start : start + 50])

    first = await taken(group, count_max=10)  # So that it knows their size.
    entries = await taken(group, first[-1].id, count_max=250)

    assert [entry.data for entry in entries] == bodies[10:260]
    assert [entry.data for entry in await taken(group, entries[-1].id)] == bodies[260:]


async def test_a_wait_ends_with_the_next_entry_or_at_its_timeout(valkey: Valkey) -> None:
    group = await an_owner(valkey)

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(group.wait(BEGINNING, seconds=60))
        await asyncio.sleep(0.05)
        await append(valkey, 1)
    async with asyncio.timeout(30):
        await group.wait("9999999999999-0", seconds=0.05)


async def test_a_group_without_valkey_raises_unavailable() -> None:
    async with open_valkey(f"redis://127.0.0.1:{find_port()}/0") as away:
        group = a_group(away)

        with pytest.raises(UnavailableError):
            await group.acquire()
        with pytest.raises(UnavailableError):
            await group.read(BEGINNING, until=None, count_max=1)
        with pytest.raises(UnavailableError):
            await group.wait(BEGINNING, seconds=1)


# --- tries


async def test_the_tries_of_all_workers_are_counted_together(valkey: Valkey) -> None:
    await append(valkey, 2)
    one = await an_owner(valkey, "one@host")
    entry, other = await taken(one)

    assert [await one.count_try(entry.id) for _ in range(2)] == [1, 2]
    assert await one.count_try(other.id) == 1
    assert await (await an_owner(valkey, "other@host")).count_try(entry.id) == 3


async def test_tries_are_counted_by_event_also_within_a_group(valkey: Valkey) -> None:
    await append(valkey, 12)
    one = await an_owner(valkey)
    entries = await taken(one)
    assert await valkey.xlen(STREAM) == 1

    for _ in range(4):
        await one.count_try(entries[3].id)

    assert [await one.count_try(entry.id) for entry in entries] == [1, 1, 1, 5, *[1] * 8]


async def test_tries_are_forgotten_once_the_event_is_applied(valkey: Valkey) -> None:
    await append(valkey, 12)
    entries = await taken(one := await an_owner(valkey, "one@host"))
    for entry in entries[3:5]:
        await one.count_try(entry.id)

    for life in range(7):
        await taken(await an_owner(valkey, "other@host", incarnation=f"{life}"))
    other = await an_owner(valkey, "other@host", incarnation="last")
    assert await other.count_try(entries[3].id) == 2
    await taken(other, entries[3].id)
    assert await valkey.hgetall(tries_key("test")) == {entries[4].id.encode(): b"1"}

    await taken(other, entries[4].id)
    assert not await valkey.exists(tries_key("test"))


# --- which entries


@given(st.integers(0, 12), st.one_of(st.none(), st.integers(0, 12)), st.integers(1, 15))
def test_no_more_entries_are_readable_than_requested_or_before_the_limit(
    count: int, limit: int | None, count_max: int
) -> None:
    entries = [LogEntry(f"{number}-0", b"") for number in range(1, count + 1)]

    given_count = count_readable(entries, None if limit is None else f"{limit}-0", count_max)

    assert given_count == min(count, count_max, count if limit is None else limit)


@given(data=st.data(), mishaps=st.lists(st.integers(0, 9), min_size=1, max_size=25))
def test_the_owner_always_reads_the_entries_after_the_cursor(
    data: st.DataObject, mishaps: list[int], shared_valkey: EmbeddedValkey
) -> None:
    async def live() -> None:
        async with open_valkey(shared_valkey.url) as valkey:
            await valkey.delete(STREAM, lock_key("test"))
            life = Life(valkey, data, owner=await an_owner(valkey))
            mishap = [
                *(life.append, life.apply, life.apply, life.lose_an_answer, life.crash),
                *(life.zombie_reads, life.lose_the_group, life.move_the_group, life.go_back, life.trim),
            ]
            for number in mishaps:
                await mishap[number]()
            await life.apply()

    asyncio.run(live())


class Life:
    """An owner with a cursor, and what may happen to both."""

    def __init__(self, valkey: Valkey, data: st.DataObject, *, owner: ConsumerGroup) -> None:
        self._valkey = valkey
        self._data = data
        self._owner = self._zombie = owner
        self._cursor = BEGINNING
        self._appended = 0
        self._lives = 1

    async def append(self) -> None:
        count = 1 + self._draw(14)  # Some are a group.
        await append(self._valkey, count, first=self._appended)
        self._appended += count

    async def apply(self) -> None:
        following = [one for one in await all_entries(self._valkey) if self._is_ahead(one)]
        limit = following[self._draw(len(following) - 1)].id if following and self._draw(1) else None

        entries = await taken(self._owner, self._cursor, until=limit, count_max=1 + self._draw(3))

        assert entries == following[: len(entries)]
        assert entries or not following
        applied = self._draw(len(entries))
        self._cursor = entries[applied - 1].id if applied else self._cursor

    async def lose_an_answer(self) -> None:
        await taken(self._owner, self._cursor)

    async def crash(self) -> None:
        self._lives += 1
        self._zombie, self._owner = self._owner, await an_owner(self._valkey, f"{self._lives}@host")

    async def zombie_reads(self) -> None:
        await self._zombie.read(self._cursor, until=None, count_max=2)

    async def lose_the_group(self) -> None:
        if await self._valkey.exists(STREAM):
            await self._valkey.xgroup_destroy(STREAM, "test")

    async def move_the_group(self) -> None:
        entries = await all_entries(self._valkey)
        if entries and await self._valkey.xinfo_groups(STREAM):
            await self._valkey.xgroup_setid(STREAM, "test", entries[self._draw(len(entries) - 1)].id)

    async def go_back(self) -> None:
        older = [one.id for one in await all_entries(self._valkey) if not self._is_ahead(one)]
        self._cursor = older[self._draw(len(older) - 1)] if older else self._cursor

    async def trim(self) -> None:
        await self._valkey.xtrim(STREAM, minid=self._cursor, approximate=False)

    def _is_ahead(self, entry: LogEntry) -> bool:
        return parse_entry_id(entry.id) > parse_entry_id(self._cursor)

    def _draw(self, most: int) -> int:
        return self._data.draw(st.integers(0, most))


async def all_entries(valkey: Valkey) -> list[LogEntry]:
    # The stubs allow every protocol version and decoding.
    rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", await valkey.xrange(STREAM))
    return [entry for row in rows for entry in unpack_row(*row)]
