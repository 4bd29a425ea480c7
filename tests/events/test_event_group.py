"""Groups of events: every event has an id of its own, and every reader finds it, wherever its range begins or ends."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.events import erasure
from adloom.events.erasure import StreamSearch, clean_letter
from adloom.events.log.event import BEGINNING, LogEntry, decode_event, encode_event, parse_entry_id
from adloom.events.log.event_group import (
    BLOCK,
    GROUP_BYTES_MAX,
    GROUP_EVENTS_MAX,
    GROUP_EVENTS_MIN,
    USER_KEY,
    GroupIds,
    group_events,
    pack_group,
    unpack_entry,
    unpack_group,
)
from adloom.events.log.stream import BLOCK_ENTRIES, CLOCKS_DIFFER_MAX, STREAM, ValkeyEventLog
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.events.projections.group import READ_ENTRIES_MAX, ConsumerGroup, lock_key
from adloom.events.rebuild import log_scanner
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.ports import find_port
from adloom.runtime.telemetry.heartbeat import GONE_AFTER, PROCESSES, ProcessHeartbeat, Reading
from adloom.runtime.valkey import Valkey, open_valkey
from tests.events.builders import NOW, USER, a_click, a_conversion, an_auction, an_impression
from tests.events.followed import a_served
from tests.support.eventually import becomes

LONE = encode_event(an_impression(user_id=USER))
OTHER = encode_event(an_impression())

sizes = st.sampled_from([1, 100, 300, 5_000, GROUP_BYTES_MAX // 2, GROUP_BYTES_MAX + 1])
events = st.tuples(st.booleans(), sizes).map(lambda one: (LONE if one[0] else b"") + bytes(one[1]))


@given(st.lists(events, max_size=40) | st.integers(0, 1_200).map(lambda count: [b"x"] * count))
def test_each_event_is_in_one_group_or_alone_and_groups_are_small_enough(taken: list[bytes]) -> None:
    numbered = [b"%06d" % place + event for place, event in enumerate(taken)]

    alone, groups = group_events(numbered)

    grouped = [event for group in groups for event in unpack_group(group.packed)]
    assert sorted([*alone, *grouped]) == numbered
    assert not any(USER_KEY in event for event in grouped)
    named = [event for event in alone if USER_KEY in event]
    assert (named, grouped) == (sorted(named), sorted(grouped)), "the order is kept among each"
    for group in groups:
        assert len(unpack_group(group.packed)) == group.count
        assert GROUP_EVENTS_MIN <= group.count <= GROUP_EVENTS_MAX
        assert len(group.packed) <= GROUP_BYTES_MAX + 6 * group.count + 6


def test_a_large_append_of_small_events_is_all_groups() -> None:
    alone, groups = group_events([OTHER] * 1_200)

    assert not alone
    assert sum(group.count for group in groups) == 1_200
    assert len(groups) <= 1_200 * len(OTHER) // GROUP_BYTES_MAX + 3


def test_what_asks_for_a_number_of_entries_gets_few_megabytes_however_many_events_they_have() -> None:
    assert erasure.ENTRIES_A_CALL * GROUP_BYTES_MAX <= 2 * 2**20
    assert log_scanner.ENTRIES_AT_ONCE * GROUP_BYTES_MAX <= 2 * 2**20
    assert BLOCK_ENTRIES * GROUP_BYTES_MAX <= 2 * 2**20
    assert READ_ENTRIES_MAX * GROUP_BYTES_MAX <= 4 * 2**20
    assert READ_ENTRIES_MAX >= 256, "events that stay alone are entries, too"


# --- who names a user

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
kinds: list[Any] = [an_impression, a_click]


@given(user=st.uuids() | st.just(UUID(int=0)), page=texts | st.none(), name=texts, session=texts | st.none())
def test_every_event_that_names_a_user_is_recognised(
    user: UUID, page: str | None, name: str, session: str | None
) -> None:
    for make in kinds:
        assert USER_KEY in encode_event(make(name, user_id=user, page_url=page, session_id=session))
    assert USER_KEY in encode_event(a_served(user_id=user))
    assert USER_KEY in encode_event(an_auction(user_id=user))


@given(text=texts)
@example("\xa1u\xc4\x10" + 16 * "x")
def test_no_text_looks_as_if_a_user_were_named(text: str) -> None:
    for make in kinds:
        event = make(text, page_url=text, session_id=text, country_code=text, device_type=text)
        assert USER_KEY not in encode_event(event)
    assert USER_KEY not in encode_event(a_conversion(currency=text))


# --- ids


def test_what_is_no_group_is_one_event() -> None:
    for packed in (b"", b"x", OTHER, b"\x90", b"\xdc\x00\x01", b"\x92\xa1a\xa1b"):
        assert unpack_entry("5-7", b"g", packed) == [LogEntry("5-7", packed)]


def test_the_events_of_a_group_are_numbered_up_to_its_id() -> None:
    packed = pack_group([b"a", b"b", b"c"]).packed

    assert unpack_entry("5-7", b"g", packed) == [
        LogEntry("5-5", b"a"),
        LogEntry("5-6", b"b"),
        LogEntry("5-7", b"c"),
    ]
    assert unpack_entry("5-7", b"e", packed) == [LogEntry("5-7", packed)]


@settings(max_examples=25)
@given(data=st.data(), steps=st.lists(st.sampled_from("aaaaassfdtx"), min_size=1, max_size=14))
def test_ids_grow_and_every_reader_finds_the_same_events(
    data: st.DataObject, steps: list[str], shared_valkey: EmbeddedValkey
) -> None:
    async def live() -> None:
        async with open_valkey(shared_valkey.url) as valkey:
            await valkey.delete(STREAM, PROCESSES, lock_key("test"))
            writers = _Writers(valkey, data)
            for step in steps:
                await writers.do(step)
            await writers.append()
            await _Readers(valkey, data, await writers.check()).check()

    asyncio.run(live())


class _Writers:
    """Two delivery processes that append, a clock that goes back, and entries that are removed."""

    def __init__(self, valkey: Valkey, data: st.DataObject) -> None:
        self._valkey = valkey
        self._logs = ValkeyEventLog(valkey), ValkeyEventLog(valkey)
        self._draw = data.draw
        self._last = (0, 0)
        self._made = 0
        self._kept: list[LogEntry] = []

    async def do(self, step: str) -> None:
        match step:
            case "a":
                await self.append()
            case "s":  # As the side stream's script, and a retried dead letter.
                await self._valkey.xadd(STREAM, {"e": self._make()})
            case "f":  # The clock of before was ahead; an empty stream may be set to a cursor, too.
                if await self._valkey.exists(STREAM):
                    millis, sequence = self._last
                    millis += self._draw(st.sampled_from([0, 1, 60_000]))
                    self._last = millis, sequence + self._draw(st.integers(0, 5))
                    millis, sequence = self._last
                    await self._valkey.execute_command("XSETID", STREAM, f"{millis}-{sequence}")
            case "d":  # The newest entry is deleted.
                rows = cast("list[tuple[bytes, object]]", await self._valkey.xrevrange(STREAM, count=1))
                if rows:
                    await self._valkey.xdel(STREAM, rows[0][0])
            case "t":
                # How many there are depends on the clock, and what is drawn must not.
                place = self._draw(st.integers(0, 999))
                if self._kept:
                    place %= len(self._kept)
                    await self._valkey.xtrim(STREAM, minid=self._kept[place].id, approximate=False)
            case _:
                await asyncio.gather(self.append(), self.append())
        if step != "x":
            await self._note()

    async def append(self) -> None:
        count = self._draw(st.sampled_from([1, 2, 9, 10, 12, 30]))
        share = self._draw(st.sampled_from([0, 2, 7]))
        made = [self._make(is_alone=bool(share) and place % share == 1) for place in range(count)]
        await self._logs[self._made % 2].append(made)
        await self._note()

    async def check(self) -> list[LogEntry]:
        return self._kept

    async def _note(self) -> None:
        """Check that what was appended has ids after all that there ever were, each once."""
        self._kept = await _read_all(self._valkey)
        orders = [parse_entry_id(entry.id) for entry in self._kept]
        assert orders == sorted(set(orders))
        new = [entry for entry in self._kept if parse_entry_id(entry.id) > self._last]
        known = {entry.data for entry in self._kept if parse_entry_id(entry.id) <= self._last}
        assert not known.intersection(entry.data for entry in new)
        assert len({entry.data for entry in self._kept}) == len(self._kept)
        if new:
            self._last = parse_entry_id(new[-1].id)

    def _make(self, *, is_alone: bool = False) -> bytes:
        self._made += 1
        return (LONE if is_alone else OTHER) + b"%d" % self._made


async def _read_all(valkey: Valkey) -> list[LogEntry]:
    rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", await valkey.xrange(STREAM))
    return [
        entry
        for row_id, fields in rows
        for entry in unpack_entry(row_id.decode(), *next(iter(fields.items())))
    ]


class _Readers:
    """All who read the log, each with a range of its own."""

    def __init__(self, valkey: Valkey, data: st.DataObject, there: Sequence[LogEntry]) -> None:
        self._valkey = valkey
        self._draw = data.draw
        self._there = list(there)

    def _choose(self) -> str:
        """Choose an event, or an id that is not there."""
        entry = self._there[self._draw(st.integers(0, 999)) % len(self._there)]
        millis, sequence = parse_entry_id(entry.id)
        return f"{millis}-{max(0, sequence + self._draw(st.sampled_from([0, 0, 0, -1, 1, 20])))}"

    def _between(self, first: str, last: str) -> list[LogEntry]:
        """Return what lies between two ids; the first is left out if it begins with a bracket."""
        begin, end = parse_entry_id(first.removeprefix("(")), parse_entry_id(last)
        begin = begin[0], begin[1] + first.startswith("(")
        return [entry for entry in self._there if begin <= parse_entry_id(entry.id) <= end]

    async def check(self) -> None:
        newest = self._there[-1].id
        log, scanner = ValkeyEventLog(self._valkey), LogScanner(self._valkey)
        assert await log.read_last_id() == newest
        assert await scanner.find_oldest() == self._there[0].id
        after, count_max = self._choose(), self._draw(st.sampled_from([3, 10, 99, 700]))
        expected = self._between(f"({after}", newest)
        found = await log.read(after, count_max=count_max, wait_seconds=0.001)
        assert found == expected[:count_max]
        await self._check_group(after, count_max)
        for _ in range(3):
            await self._check_scanner(scanner)

    async def _check_scanner(self, scanner: LogScanner) -> None:
        first, last, count_max = (
            self._choose(),
            self._choose(),
            self._draw(st.sampled_from([3, 20, 4_000])),
        )
        start = self._draw(st.sampled_from(["", "("])) + first
        found: list[LogEntry] = []
        expected = self._between(start, last)
        while entries := await scanner.read(start, last, count_max=count_max):
            found += entries
            start = f"({found[-1].id}"
        assert found == expected
        ids: list[str] = []
        async for count, runs in scanner.scan_ids(first, last):
            new = [
                f"{run.entry_ms}-{place}" for run in runs for place in range(run.first_seq, run.last_seq + 1)
            ]
            assert len(new) == count > 0
            ids += new
        assert ids == [entry.id for entry in self._between(first, last)]

    async def _check_group(self, cursor: str, count_max: int) -> None:
        group = ConsumerGroup(self._valkey, "test", consumer="one@host", incarnation="1")
        assert await group.acquire()
        found: list[LogEntry] = []
        expected = self._between(f"({cursor}", self._there[-1].id)
        while entries := await group.read(cursor, until=None, count_max=count_max):
            found += entries
            cursor = entries[-1].id
            if len(found) % 3 == 0:  # Another worker goes on, or the same one from its cursor.
                group = ConsumerGroup(self._valkey, "test", consumer="one@host", incarnation="1")
                assert await group.acquire()
        assert found == expected


# --- processes of an older version


def a_heartbeat(*, age: timedelta = timedelta(), **fields: Any) -> ProcessHeartbeat:
    return ProcessHeartbeat(
        process="worker",
        kind="worker",
        host="host",
        pid=7,
        version="0.1",
        started_at=NOW,
        told_at=NOW - age,
        requests_per_second=0,
        reading=Reading(),
        **fields,
    )


async def test_no_group_is_appended_while_a_process_cannot_read_groups(valkey: Valkey) -> None:
    async def append_and_count(*heartbeats: ProcessHeartbeat) -> int:
        await valkey.delete(STREAM, PROCESSES)
        for number, heartbeat in enumerate(heartbeats):
            await valkey.hset(PROCESSES, f"{number}", _encode_json(heartbeat))
        event_log = ValkeyEventLog(valkey, clock=ManualClock(NOW))
        await event_log.append([OTHER] * 30)
        assert [entry.data for entry in await _read_all(valkey)] == [OTHER] * 30
        return await valkey.xlen(STREAM)

    new, old = a_heartbeat(log_format=1), a_heartbeat()
    assert await append_and_count() == 1
    assert await append_and_count(new, new) == 1
    assert await append_and_count(new, old, new) == 30
    assert await append_and_count(new, a_heartbeat(age=GONE_AFTER)) == 30, "its clock may be behind"
    assert await append_and_count(new, a_heartbeat(age=GONE_AFTER + CLOCKS_DIFFER_MAX)) == 1


def _encode_json(heartbeat: ProcessHeartbeat) -> bytes:

    return msgspec.json.encode(heartbeat)


# --- erasing a user


async def test_a_letter_with_a_group_of_an_older_worker_loses_only_what_names_the_user(
    valkey: Valkey,
) -> None:
    address = f"https://pub.example/{USER}"
    group = [encode_event(an_impression(f"{number}", page_url=address)) for number in range(5)]
    packed = pack_group([*group, b"no event"]).packed
    letters = DeadLetterQueue(valkey)
    await letters.add("event_tables", "1-5", packed, reason="It is no event.", tries=5, again=packed)

    await StreamSearch(valkey).clean_letters(USER)

    [letter] = await letters.list_after()
    left = [decode_event(event) for event in unpack_group(letter.data)]
    assert left == [an_impression(f"{number}") for number in range(5)]
    await clean_letter(valkey, letter.id)
    assert await letters.count() == 1


async def test_the_log_is_read_from_its_beginning_across_old_entries_and_groups(valkey: Valkey) -> None:
    await valkey.xadd(STREAM, {"e": b"old"}, id="1-0")
    await ValkeyEventLog(valkey).append([b"%d" % number for number in range(30)])

    entries = await ValkeyEventLog(valkey).read(BEGINNING, count_max=99, wait_seconds=1)

    assert [entry.data for entry in entries] == [b"old", *(b"%d" % number for number in range(30))]
    assert [parse_entry_id(entry.id)[1] for entry in entries] == [0, *range(30)]


# --- a server that takes no writes


async def test_a_server_that_became_a_replica_refuses_groups_as_it_refuses_other_entries(
    valkey: Valkey,
) -> None:
    """The connection is closed, so the next append looks for the primary."""
    async with aclosing(DedicatedConnection(valkey)) as line:
        event_log = ValkeyEventLog(valkey, line)
        await event_log.append([OTHER] * 30)
        clients = await valkey.client_list()

        async def has_fewer() -> bool:
            return len(await valkey.client_list()) < len(clients)

        await valkey.execute_command("REPLICAOF", "127.0.0.1", f"{find_port()}")
        try:
            with pytest.raises(UnavailableError, match="ConnectionError"):
                await event_log.append([OTHER] * 30)
            await becomes(has_fewer, seconds=10)
        finally:
            await valkey.execute_command("REPLICAOF", "NO", "ONE")

        await event_log.append([OTHER] * 30)
        assert len(await _read_all(valkey)) == 60


# --- ids that the appending process chooses


async def test_from_the_second_append_on_groups_need_no_script(valkey: Valkey) -> None:
    async with aclosing(DedicatedConnection(valkey)) as line:
        event_log = ValkeyEventLog(valkey, line)
        await event_log.append([OTHER] * 30)
        await valkey.config_resetstat()

        for number in range(20):
            await asyncio.sleep(0.003)
            await event_log.append([OTHER + b"%d" % number] * 30 + [LONE])

        done = await valkey.info("commandstats")
    assert "cmdstat_eval" not in done
    assert done["cmdstat_xadd"] == {**done["cmdstat_xadd"], "calls": 40, "failed_calls": 0}
    assert len(await _read_all(valkey)) == 30 + 20 * 31


async def test_a_group_that_the_server_refuses_by_its_id_is_appended_all_the_same(valkey: Valkey) -> None:
    event_log = ValkeyEventLog(valkey)
    await event_log.append([OTHER] * 30)
    seconds, _ = await valkey.time()
    await valkey.xadd(STREAM, {"e": b"of a clock that was ahead"}, id=f"{(seconds + 60) * 1000}-7")

    await event_log.append([OTHER] * 30 + [LONE])

    orders = [parse_entry_id(entry.id) for entry in await _read_all(valkey)]
    assert len(orders) == 30 + 1 + 31
    assert orders == sorted(set(orders))


@given(
    steps=st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 4), st.integers(-3, 3)), min_size=1),
    process=st.integers(0, 1),
)
def test_chosen_ids_grow_and_leave_room_for_a_whole_group(
    steps: list[tuple[int, int, int]], process: int
) -> None:
    ids, at, last = GroupIds(), 1_000.0 * process, (0, 0)
    assert ids.choose(1, at=at) is None

    for micros, count, set_by in steps:
        at += micros / 1e6
        ids.note_time(5_000 + at + set_by / 1_000, at=at)
        for chosen in ids.choose(count, at=at) or ():
            order = parse_entry_id(chosen)
            assert order > last
            assert order[1] % BLOCK == BLOCK - 1
            last = order
