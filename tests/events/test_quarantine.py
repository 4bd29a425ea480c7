"""A batch with bad entries: the good ones are folded in their order, the bad ones given up after five tries."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import UnavailableError
from adloom.events.log.event import BEGINNING, LogEntry, encode_event
from adloom.events.ports import CursorMovedError
from adloom.events.projections.dead_letters import unwrap_redelivery, wrap_redelivery
from adloom.events.projections.quarantine import TRIES_MAX, BatchApplier
from tests.events.book import Book
from tests.events.builders import an_impression

KINDS = st.sampled_from(["good", "unreadable", "refused", "stumbling"])


class Bench:
    """Counts tries and keeps dead letters as the ledger does."""

    def __init__(self) -> None:
        self.tries: Counter[str] = Counter()
        self.dead: dict[str, tuple[str, int, bytes]] = {}
        self.is_full = False

    async def acquire(self) -> bool:
        return True

    async def release(self) -> None: ...

    async def read(self, after: str, *, until: str | None, count_max: int) -> Sequence[LogEntry] | None:
        raise NotImplementedError

    async def wait(self, after: str, *, seconds: float) -> None: ...

    async def count_try(self, entry_id: str) -> int:
        self.tries[entry_id] += 1
        return self.tries[entry_id]

    async def add_dead_letter(self, entry: LogEntry, *, reason: str, tries: int, again: bytes) -> None:
        assert reason
        if self.is_full:
            raise UnavailableError("No room.")
        self.dead[entry.id] = reason, tries, again


def a_folder(bench: Bench, book: Book, *, is_follower: bool = False) -> BatchApplier:
    return BatchApplier("test", bench, book, is_follower=is_follower, try_again_seconds=0)


def entries_of(kinds: Sequence[str], book: Book) -> list[LogEntry]:
    """Make entries of these kinds, and tell the book which it will not take."""
    entries: list[LogEntry] = []
    for number, kind in enumerate(kinds, start=1):
        name = f"{kind} {number}"
        if kind == "refused":
            book.refuses.add(name)
        if kind == "stumbling":
            book.stumbles_over.add(name)
        data = b"no event" if kind == "unreadable" else encode_event(an_impression(name))
        entries.append(LogEntry(f"{number}-0", data))
    return entries


@given(st.lists(KINDS, min_size=1, max_size=40))
async def test_good_entries_are_applied_in_order_and_a_bad_one_is_a_dead_letter_after_five_tries(
    kinds: list[str],
) -> None:
    bench, book = Bench(), Book()
    entries = entries_of(kinds, book)

    cursor = await a_folder(bench, book).apply(entries, after=BEGINNING)

    good = [entry.id for entry, kind in zip(entries, kinds, strict=True) if kind == "good"]
    bad = [entry.id for entry, kind in zip(entries, kinds, strict=True) if kind != "good"]
    assert cursor == book.at == entries[-1].id
    assert [record.entry_id for record in book.applied] == good
    assert sorted(bench.dead) == sorted(bad)
    assert {tries for _, tries, _ in bench.dead.values()} <= {TRIES_MAX}
    assert bench.tries == dict.fromkeys(bad, TRIES_MAX)


async def test_what_is_good_costs_one_commit() -> None:
    bench, book = Bench(), Book()

    await a_folder(bench, book).apply(entries_of(["good"] * 9, book), after=BEGINNING)

    assert book.batches == [9]


async def test_a_refusal_that_passes_is_no_death() -> None:
    bench, book = Bench(), Book()
    entries = entries_of(["good", "refused", "good"], book)

    class Passing(Bench):
        async def count_try(self, entry_id: str) -> int:
            tries = await super().count_try(entry_id)
            if tries == 3:
                book.refuses.clear()
            return tries

    bench = Passing()
    await a_folder(bench, book).apply(entries, after=BEGINNING)

    assert book.names == ["good 1", "refused 2", "good 3"]
    assert bench.dead == {}


async def test_tries_of_an_earlier_life_count() -> None:
    bench, book = Bench(), Book()
    entries = entries_of(["refused"], book)
    bench.tries["1-0"] = TRIES_MAX - 1

    await a_folder(bench, book).apply(entries, after=BEGINNING)

    assert bench.dead["1-0"][1] == TRIES_MAX


async def test_a_store_that_is_away_is_no_try() -> None:
    bench, book = Bench(), Book()
    entries = entries_of(["good", "refused"], book)
    book.is_away = True

    with pytest.raises(UnavailableError):
        await a_folder(bench, book).apply(entries, after=BEGINNING)

    assert bench.tries == {}
    assert bench.dead == {}


async def test_a_store_that_fails_over_nothing_too_blames_no_entry() -> None:
    bench, book = Bench(), Book()
    entries = entries_of(["good", "good", "good"], book)
    book.is_broken = True

    with pytest.raises(RuntimeError):
        await a_folder(bench, book).apply(entries, after=BEGINNING)

    assert bench.tries == {}
    assert bench.dead == {}


async def test_a_cursor_that_another_moved_ends_the_batch() -> None:
    bench, book = Bench(), Book()
    entries = entries_of(["good", "refused", "good"], book)
    book.at = "5-0"

    with pytest.raises(CursorMovedError):
        await a_folder(bench, book).apply(entries, after=BEGINNING)

    assert bench.tries == {}


async def test_without_room_for_dead_letters_the_cursor_stays_before_the_bad_entry() -> None:
    bench, book = Bench(), Book()
    entries = entries_of(["good", "refused", "good"], book)
    bench.is_full = True

    with pytest.raises(UnavailableError):
        await a_folder(bench, book).apply(entries, after=BEGINNING)

    assert book.at == "1-0"
    assert book.names == ["good 1"]


async def test_a_follower_leaves_unreadable_entries_to_the_projection_it_follows() -> None:
    bench, book = Bench(), Book()
    entries = entries_of(["unreadable", "good", "unreadable"], book)

    await a_folder(bench, book, is_follower=True).apply(entries, after=BEGINNING)

    assert book.names == ["good 2"]
    assert book.at == "3-0"
    assert bench.dead == {}


async def test_an_entry_of_a_follower_comes_again_to_it_alone_and_under_its_first_id() -> None:
    bench, book = Bench(), Book()
    entries = entries_of(["refused"], book)
    await a_folder(bench, book, is_follower=True).apply(entries, after=BEGINNING)
    again = LogEntry("9-0", bench.dead["1-0"][2])
    book.refuses.clear()
    other = Book()
    other.at = "1-0"

    await a_folder(Bench(), book, is_follower=True).apply([again], after="1-0")
    await BatchApplier("other", Bench(), other, is_follower=False).apply([again], after="1-0")

    assert [record.entry_id for record in book.applied] == ["1-0"]
    assert book.at == other.at == "9-0"
    assert other.applied == []


async def test_an_entry_of_no_follower_comes_again_as_it_was() -> None:
    bench, book = Bench(), Book()
    entries = entries_of(["refused"], book)

    await a_folder(bench, book).apply(entries, after=BEGINNING)

    assert bench.dead["1-0"][2] == entries[0].data


def test_what_comes_again_a_second_time_is_wrapped_once() -> None:
    first = wrap_redelivery(LogEntry("1-0", b"data"), "frequency")

    second = wrap_redelivery(LogEntry("7-0", first), "frequency")

    assert second == first
    again = unwrap_redelivery(second)
    assert again is not None
    assert (again.projection, again.entry_id, again.data) == ("frequency", "1-0", b"data")
