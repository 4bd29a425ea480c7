"""Followers use the entries that the first projection of their worker has read, without a gap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.events.log.event import BEGINNING, Impression, LogEntry, UnreadableEntryError, encode_event
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.ports import DecodedEntry
from adloom.events.projections.group import ConsumerGroup, lock_key
from adloom.events.projections.recent_entries import KEPT_SECONDS, RecentEntries
from adloom.runtime.valkey import Valkey
from tests.events.builders import an_impression


def entries(*numbers: int) -> list[LogEntry]:
    return [LogEntry(f"{number}-0", b"%d" % number) for number in numbers]


def ids(found: list[LogEntry]) -> list[str]:
    return [entry.id for entry in found]


def test_entries_after_an_id_are_returned_up_to_a_count() -> None:
    recent = RecentEntries()
    recent.add(BEGINNING, entries(1, 2, 3))
    recent.add("3-0", entries(4, 5))

    assert ids(recent.read_after(BEGINNING, count_max=2)) == ["1-0", "2-0"]
    assert ids(recent.read_after("2-0", count_max=10)) == ["3-0", "4-0", "5-0"]
    assert recent.read_after("5-0", count_max=10) == []


@pytest.mark.parametrize("unknown", ["0-0", "4-0", "6-5", "99-0"])
def test_nothing_is_returned_where_entries_may_be_missing(unknown: str) -> None:
    recent = RecentEntries()
    recent.add("5-0", entries(6, 8))

    assert recent.read_after(unknown, count_max=10) == []


def test_entries_before_a_gap_are_dropped() -> None:
    recent = RecentEntries()
    recent.add(BEGINNING, entries(1, 2))
    recent.add("9-0", entries(10))

    assert recent.read_after("1-0", count_max=10) == []
    assert ids(recent.read_after("9-0", count_max=10)) == ["10-0"]


@given(
    sizes=st.lists(st.integers(0, 7), max_size=12),
    seconds=st.integers(0, 8),
    kept_max=st.integers(0, 10),
    bytes_max=st.integers(0, 10) | st.just(1_000),
    asked=st.integers(0, 50),
)
def test_returned_entries_equal_the_log(
    sizes: list[int], seconds: int, kept_max: int, bytes_max: int, asked: int
) -> None:
    recent, last = RecentEntries(kept_max=kept_max, bytes_max=bytes_max), 0
    for number, size in enumerate(sizes):
        recent.add(f"{last}-0", entries(*range(last + 1, last + size + 1)), at=float(number * seconds))
        last += size

    found = recent.read_after(f"{asked}-0", count_max=5)

    assert found == entries(*range(asked + 1, asked + 1 + len(found)))
    if sizes and kept_max >= last > asked and bytes_max == 1_000 and len(sizes) * seconds < KEPT_SECONDS:
        assert len(found) == min(5, last - asked)


def test_entries_that_were_added_a_while_ago_are_dropped() -> None:
    recent = RecentEntries(kept_max=4)
    recent.add(BEGINNING, entries(1, 2), at=100.0)
    recent.add("2-0", entries(3), at=101.0)
    assert ids(recent.read_after(BEGINNING, count_max=10)) == ["1-0", "2-0", "3-0"]

    recent.add("3-0", [], at=100.0 + KEPT_SECONDS)
    assert recent.read_after("1-0", count_max=10) == []
    assert ids(recent.read_after("2-0", count_max=10)) == ["3-0"]

    recent.add("3-0", entries(4, 5, 6, 7), at=111.0)  # Too many: the oldest are gone before their time.
    recent.add("7-0", entries(8), at=112.0)
    recent.add("8-0", [], at=111.0 + KEPT_SECONDS)
    assert ids(recent.read_after("7-0", count_max=10)) == ["8-0"]
    recent.add("8-0", [], at=1_000.0)
    assert recent.read_after("7-0", count_max=10) == []


def test_large_entries_are_dropped_sooner() -> None:
    """An auction of an older release has 15 kilobytes: forty thousand of them would be a gigabyte."""
    recent = RecentEntries(bytes_max=150_000)
    large = [LogEntry(f"{number}-0", bytes(15_000)) for number in range(1, 26)]

    for entry, before in zip(large, [LogEntry("0-0", b""), *large], strict=False):
        recent.add(before.id, [entry])
        kept = [one for number in range(26) for one in recent.read_after(f"{number}-0", count_max=1)]
        assert sum(len(one.data) for one in kept) <= 150_000
        assert kept[-1] is entry

    recent.add("25-0", [LogEntry("26-0", bytes(200_000))])
    assert recent.read_after("25-0", count_max=1) == []


# --- decoded entries


def an_entry(number: int, impression: Impression | None = None) -> LogEntry:
    return LogEntry(f"{number}-0", encode_event(impression or an_impression(correlation_id=f"c{number}")))


def test_a_kept_entry_is_decoded_once() -> None:
    recent = RecentEntries()
    recent.add(BEGINNING, [an_entry(number) for number in range(1, 6)])

    first = recent.decode(recent.read_after(BEGINNING, count_max=4))
    second = recent.decode(recent.read_after("2-0", count_max=10))

    assert [record.entry_id for record in first] == ["1-0", "2-0", "3-0", "4-0"]
    assert [record.entry_id for record in second] == ["3-0", "4-0", "5-0"]
    assert [id(record) for record in second[:2]] == [id(record) for record in first[2:]]


def test_an_id_that_was_used_again_is_decoded_again() -> None:
    recent, other = RecentEntries(), an_impression(correlation_id="another")
    recent.add(BEGINNING, [an_entry(1)])
    recent.decode(recent.read_after(BEGINNING, count_max=1))

    assert recent.decode([an_entry(1, other)]) == [DecodedEntry("1-0", other)]
    recent.add(BEGINNING, [an_entry(1, other)])
    assert recent.decode(recent.read_after(BEGINNING, count_max=1)) == [DecodedEntry("1-0", other)]


@pytest.mark.parametrize("kept_max", [0, 1, 4, 10])
def test_an_entry_that_is_not_kept_is_decoded_too(kept_max: int) -> None:
    recent, some = RecentEntries(kept_max=kept_max), [an_entry(number) for number in range(1, 9)]
    expected = [
        DecodedEntry(f"{number}-0", an_impression(correlation_id=f"c{number}")) for number in range(1, 9)
    ]
    recent.add(BEGINNING, some[:6])

    assert recent.decode(some) == expected
    assert recent.decode(some[:6]) == expected[:6]
    assert recent.decode(some[2:5]) == expected[2:5]
    assert recent.decode([]) == []


def test_an_unreadable_entry_does_not_affect_later_ones() -> None:
    recent = RecentEntries()
    recent.add(BEGINNING, [an_entry(1), LogEntry("2-0", b"\xc1"), an_entry(3)])

    with pytest.raises(UnreadableEntryError):
        recent.decode(recent.read_after(BEGINNING, count_max=3))

    assert recent.decode(recent.read_after("2-0", count_max=3)) == [
        DecodedEntry("3-0", an_impression(correlation_id="c3"))
    ]


# --- in a group


class FollowerGroups:
    """The groups of a first projection and of its follower, in one worker."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.recent = recent = RecentEntries()
        self.first = ConsumerGroup(
            valkey, "first", consumer="w@h", incarnation="1", recent=recent, is_first=True
        )
        self.second = ConsumerGroup(valkey, "second", consumer="w@h", incarnation="1", recent=recent)

    async def begin(self, count: int) -> "FollowerGroups":
        await ValkeyEventLog(self.valkey).append([b"%d" % number for number in range(count)])
        assert await self.first.acquire()
        assert await self.second.acquire()
        return self

    async def reads(self) -> int:
        """How often a group has read from the stream."""
        answer = await self.valkey.info("commandstats")
        return answer.get("cmdstat_xreadgroup", {"calls": 0})["calls"]

    async def place_of(self, projection: str) -> str | None:
        groups = await self.valkey.xinfo_groups(STREAM)
        places = {one["name"]: one["last-delivered-id"] for one in groups}
        return places[projection.encode()].decode() if projection.encode() in places else None


async def test_a_follower_uses_the_entries_that_the_first_projection_read(valkey: Valkey) -> None:
    pair = await FollowerGroups(valkey).begin(5)
    taken = await pair.first.read(BEGINNING, until=None, count_max=10)
    assert taken is not None
    reads = await pair.reads()

    followed = await pair.second.read(BEGINNING, until=taken[3].id, count_max=10)

    assert followed == taken[:4]
    assert await pair.second.read(taken[3].id, until=taken[4].id, count_max=10) == taken[4:]
    assert await pair.reads() == reads


async def test_a_follower_that_is_behind_reads_the_log_itself(valkey: Valkey) -> None:
    pair = await FollowerGroups(valkey).begin(5)
    taken = await pair.second.read(BEGINNING, until=None, count_max=10)
    assert taken is not None
    await pair.first.read(taken[2].id, until=None, count_max=10)

    assert await pair.second.read(taken[0].id, until=None, count_max=10) == taken[1:]


async def test_the_group_of_a_follower_is_moved_when_it_has_nothing_to_do(valkey: Valkey) -> None:
    pair = await FollowerGroups(valkey).begin(3)
    taken = await pair.first.read(BEGINNING, until=None, count_max=10)
    assert taken is not None
    await pair.second.read(BEGINNING, until=taken[-1].id, count_max=10)

    await pair.second.wait(taken[-1].id, seconds=0.01)

    assert await pair.place_of("second") == taken[-1].id


async def test_a_follower_notices_that_another_worker_is_the_owner(valkey: Valkey) -> None:
    pair = await FollowerGroups(valkey).begin(3)
    await pair.first.read(BEGINNING, until=None, count_max=10)
    await valkey.set(lock_key("second"), "another worker")

    assert await pair.second.read(BEGINNING, until=None, count_max=10) is None


async def test_followers_share_entries_when_the_first_projection_runs_elsewhere(
    valkey: Valkey,
) -> None:
    pair = await FollowerGroups(valkey).begin(4)
    third = ConsumerGroup(valkey, "third", consumer="w@h", incarnation="1", recent=pair.recent)
    assert await third.acquire()
    taken = await pair.second.read(BEGINNING, until=None, count_max=10)
    assert taken is not None
    reads = await pair.reads()

    assert await third.read(BEGINNING, until=taken[2].id, count_max=10) == taken[:3]
    assert await pair.reads() == reads
