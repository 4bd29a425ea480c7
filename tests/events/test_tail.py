"""Entries that the first projection of a worker took and read are there for its followers, without a gap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.events.log.entry import BEGINNING, LogEntry
from adloom.events.log.event import Impression, UnreadableEntryError, encode_event
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.ports import Record
from adloom.events.projections.group import ValkeyGroup, lease_key
from adloom.events.projections.recent_entries import Tail
from adloom.runtime.valkey import Valkey
from tests.events.builders import an_impression


def entries(*numbers: int) -> list[LogEntry]:
    return [LogEntry(f"{number}-0", b"%d" % number) for number in numbers]


def ids(found: list[LogEntry]) -> list[str]:
    return [entry.id for entry in found]


def test_what_follows_an_entry_is_given_up_to_a_count() -> None:
    tail = Tail()
    tail.add(BEGINNING, entries(1, 2, 3))
    tail.add("3-0", entries(4, 5))

    assert ids(tail.after(BEGINNING, count_max=2)) == ["1-0", "2-0"]
    assert ids(tail.after("2-0", count_max=10)) == ["3-0", "4-0", "5-0"]
    assert tail.after("5-0", count_max=10) == []


@pytest.mark.parametrize("unknown", ["0-0", "4-0", "6-5", "99-0"])
def test_nothing_is_given_where_something_may_be_missing(unknown: str) -> None:
    tail = Tail()
    tail.add("5-0", entries(6, 8))

    assert tail.after(unknown, count_max=10) == []


def test_after_a_gap_it_begins_anew() -> None:
    tail = Tail()
    tail.add(BEGINNING, entries(1, 2))
    tail.add("9-0", entries(10))

    assert tail.after("1-0", count_max=10) == []
    assert ids(tail.after("9-0", count_max=10)) == ["10-0"]


@given(
    sizes=st.lists(st.integers(0, 7), max_size=12),
    kept_max=st.integers(0, 10),
    bytes_max=st.integers(0, 10) | st.just(1_000),
    asked=st.integers(0, 50),
)
def test_whatever_is_given_is_what_the_ledger_has_there(
    sizes: list[int], kept_max: int, bytes_max: int, asked: int
) -> None:
    tail, last = Tail(kept_max=kept_max, bytes_max=bytes_max), 0
    for size in sizes:
        tail.add(f"{last}-0", entries(*range(last + 1, last + size + 1)))
        last += size

    found = tail.after(f"{asked}-0", count_max=5)

    assert found == entries(*range(asked + 1, asked + 1 + len(found)))
    if sizes and kept_max >= last > asked and bytes_max == 1_000:
        assert len(found) == min(5, last - asked)


def test_large_entries_are_forgotten_sooner() -> None:
    """An auction of an older release has 15 kilobytes: forty thousand of them would be a gigabyte."""
    tail = Tail(bytes_max=150_000)
    large = [LogEntry(f"{number}-0", bytes(15_000)) for number in range(1, 26)]

    for entry, before in zip(large, [LogEntry("0-0", b""), *large], strict=False):
        tail.add(before.id, [entry])
        kept = [one for number in range(26) for one in tail.after(f"{number}-0", count_max=1)]
        assert sum(len(one.data) for one in kept) <= 150_000
        assert kept[-1] is entry

    tail.add("25-0", [LogEntry("26-0", bytes(200_000))])
    assert tail.after("25-0", count_max=1) == []


# --- what was read


def an_entry(number: int, impression: Impression | None = None) -> LogEntry:
    return LogEntry(f"{number}-0", encode_event(impression or an_impression(correlation_id=f"c{number}")))


def test_what_is_in_it_is_read_once() -> None:
    tail = Tail()
    tail.add(BEGINNING, [an_entry(number) for number in range(1, 6)])

    first = tail.records(tail.after(BEGINNING, count_max=4))
    second = tail.records(tail.after("2-0", count_max=10))

    assert [record.entry_id for record in first] == ["1-0", "2-0", "3-0", "4-0"]
    assert [record.entry_id for record in second] == ["3-0", "4-0", "5-0"]
    assert [id(record) for record in second[:2]] == [id(record) for record in first[2:]]


def test_an_id_that_was_given_again_is_read_again() -> None:
    tail, other = Tail(), an_impression(correlation_id="another")
    tail.add(BEGINNING, [an_entry(1)])
    tail.records(tail.after(BEGINNING, count_max=1))

    assert tail.records([an_entry(1, other)]) == [Record("1-0", other)]
    tail.add(BEGINNING, [an_entry(1, other)])
    assert tail.records(tail.after(BEGINNING, count_max=1)) == [Record("1-0", other)]


@pytest.mark.parametrize("kept_max", [0, 1, 4, 10])
def test_what_is_not_in_it_is_read_all_the_same(kept_max: int) -> None:
    tail, some = Tail(kept_max=kept_max), [an_entry(number) for number in range(1, 9)]
    expected = [Record(f"{number}-0", an_impression(correlation_id=f"c{number}")) for number in range(1, 9)]
    tail.add(BEGINNING, some[:6])

    assert tail.records(some) == expected
    assert tail.records(some[:6]) == expected[:6]
    assert tail.records(some[2:5]) == expected[2:5]
    assert tail.records([]) == []


def test_what_is_no_event_spoils_nothing_else() -> None:
    tail = Tail()
    tail.add(BEGINNING, [an_entry(1), LogEntry("2-0", b"\xc1"), an_entry(3)])

    with pytest.raises(UnreadableEntryError):
        tail.records(tail.after(BEGINNING, count_max=3))

    assert tail.records(tail.after("2-0", count_max=3)) == [Record("3-0", an_impression(correlation_id="c3"))]


# --- in a group


class House:
    """The groups of a first projection and of its follower, in one worker."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.tail = tail = Tail()
        self.first = ValkeyGroup(valkey, "first", consumer="w@h", incarnation="1", tail=tail, leads=True)
        self.second = ValkeyGroup(valkey, "second", consumer="w@h", incarnation="1", tail=tail)

    async def begin(self, count: int) -> "House":
        await ValkeyEventLog(self.valkey).append([b"%d" % number for number in range(count)])
        assert await self.first.own()
        assert await self.second.own()
        return self

    async def reads(self) -> int:
        """How often anything was read from the stream by a group."""
        answer = await self.valkey.info("commandstats")
        return answer.get("cmdstat_xreadgroup", {"calls": 0})["calls"]

    async def place_of(self, projection: str) -> str | None:
        groups = await self.valkey.xinfo_groups(STREAM)
        places = {one["name"]: one["last-delivered-id"] for one in groups}
        return places[projection.encode()].decode() if projection.encode() in places else None


async def test_a_follower_goes_on_from_what_the_first_took(valkey: Valkey) -> None:
    house = await House(valkey).begin(5)
    taken = await house.first.read(BEGINNING, until=None, count_max=10)
    assert taken is not None
    reads = await house.reads()

    followed = await house.second.read(BEGINNING, until=taken[3].id, count_max=10)

    assert followed == taken[:4]
    assert await house.second.read(taken[3].id, until=taken[4].id, count_max=10) == taken[4:]
    assert await house.reads() == reads


async def test_a_follower_that_is_behind_asks_for_itself(valkey: Valkey) -> None:
    house = await House(valkey).begin(5)
    taken = await house.second.read(BEGINNING, until=None, count_max=10)
    assert taken is not None
    await house.first.read(taken[2].id, until=None, count_max=10)

    assert await house.second.read(taken[0].id, until=None, count_max=10) == taken[1:]


async def test_the_group_of_a_follower_is_moved_when_it_has_nothing_to_do(valkey: Valkey) -> None:
    house = await House(valkey).begin(3)
    taken = await house.first.read(BEGINNING, until=None, count_max=10)
    assert taken is not None
    await house.second.read(BEGINNING, until=taken[-1].id, count_max=10)

    await house.second.wait(taken[-1].id, seconds=0.01)

    assert await house.place_of("second") == taken[-1].id


async def test_a_follower_learns_that_another_is_the_owner_by_now(valkey: Valkey) -> None:
    house = await House(valkey).begin(3)
    await house.first.read(BEGINNING, until=None, count_max=10)
    await valkey.set(lease_key("second"), "somebody else")

    assert await house.second.read(BEGINNING, until=None, count_max=10) is None


async def test_where_the_first_is_elsewhere_a_follower_leaves_what_it_took_to_the_others(
    valkey: Valkey,
) -> None:
    house = await House(valkey).begin(4)
    third = ValkeyGroup(valkey, "third", consumer="w@h", incarnation="1", tail=house.tail)
    assert await third.own()
    taken = await house.second.read(BEGINNING, until=None, count_max=10)
    assert taken is not None
    reads = await house.reads()

    assert await third.read(BEGINNING, until=taken[2].id, count_max=10) == taken[:3]
    assert await house.reads() == reads
