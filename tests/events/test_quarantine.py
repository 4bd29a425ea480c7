"""A batch with bad entries: good ones are applied in order, bad ones become dead letters after five tries."""

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
from tests.events.builders import an_impression
from tests.events.fake_store import FakeStore

KINDS = st.sampled_from(["good", "unreadable", "refused", "stumbling"])


class FakeGroup:
    """Counts tries and keeps dead letters as a consumer group does."""

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


def an_applier(group: FakeGroup, store: FakeStore, *, is_follower: bool = False) -> BatchApplier:
    return BatchApplier("test", group, store, is_follower=is_follower, try_again_seconds=0)


def entries_of(kinds: Sequence[str], store: FakeStore) -> list[LogEntry]:
    """Make entries of these kinds, and configure which of them the store refuses."""
    entries: list[LogEntry] = []
    for number, kind in enumerate(kinds, start=1):
        name = f"{kind} {number}"
        if kind == "refused":
            store.refuses.add(name)
        if kind == "stumbling":
            store.stumbles_over.add(name)
        data = b"no event" if kind == "unreadable" else encode_event(an_impression(name))
        entries.append(LogEntry(f"{number}-0", data))
    return entries


@given(st.lists(KINDS, min_size=1, max_size=40))
async def test_good_entries_are_applied_in_order_and_bad_ones_become_dead_letters(
    kinds: list[str],
) -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(kinds, store)

    cursor = await an_applier(group, store).apply(entries, after=BEGINNING)

    good = [entry.id for entry, kind in zip(entries, kinds, strict=True) if kind == "good"]
    bad = [entry.id for entry, kind in zip(entries, kinds, strict=True) if kind != "good"]
    assert cursor == store.at == entries[-1].id
    assert [record.entry_id for record in store.applied] == good
    assert sorted(group.dead) == sorted(bad)
    assert {tries for _, tries, _ in group.dead.values()} <= {TRIES_MAX}
    assert group.tries == dict.fromkeys(bad, TRIES_MAX)


async def test_good_entries_are_committed_together() -> None:
    group, store = FakeGroup(), FakeStore()

    await an_applier(group, store).apply(entries_of(["good"] * 9, store), after=BEGINNING)

    assert store.batches == [9]


async def test_an_entry_that_is_accepted_on_retry_is_no_dead_letter() -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(["good", "refused", "good"], store)

    class AcceptingGroup(FakeGroup):
        async def count_try(self, entry_id: str) -> int:
            tries = await super().count_try(entry_id)
            if tries == 3:
                store.refuses.clear()
            return tries

    group = AcceptingGroup()
    await an_applier(group, store).apply(entries, after=BEGINNING)

    assert store.names == ["good 1", "refused 2", "good 3"]
    assert group.dead == {}


async def test_tries_before_a_restart_count() -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(["refused"], store)
    group.tries["1-0"] = TRIES_MAX - 1

    await an_applier(group, store).apply(entries, after=BEGINNING)

    assert group.dead["1-0"][1] == TRIES_MAX


async def test_no_try_is_counted_while_the_store_is_away() -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(["good", "refused"], store)
    store.is_away = True

    with pytest.raises(UnavailableError):
        await an_applier(group, store).apply(entries, after=BEGINNING)

    assert group.tries == {}
    assert group.dead == {}


async def test_no_entry_is_blamed_when_the_store_fails_without_entries() -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(["good", "good", "good"], store)
    store.is_broken = True

    with pytest.raises(RuntimeError):
        await an_applier(group, store).apply(entries, after=BEGINNING)

    assert group.tries == {}
    assert group.dead == {}


async def test_a_cursor_that_another_worker_moved_ends_the_batch() -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(["good", "refused", "good"], store)
    store.at = "5-0"

    with pytest.raises(CursorMovedError):
        await an_applier(group, store).apply(entries, after=BEGINNING)

    assert group.tries == {}


async def test_the_cursor_stays_before_a_bad_entry_while_dead_letters_are_full() -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(["good", "refused", "good"], store)
    group.is_full = True

    with pytest.raises(UnavailableError):
        await an_applier(group, store).apply(entries, after=BEGINNING)

    assert store.at == "1-0"
    assert store.names == ["good 1"]


async def test_a_follower_leaves_unreadable_entries_to_the_projection_it_follows() -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(["unreadable", "good", "unreadable"], store)

    await an_applier(group, store, is_follower=True).apply(entries, after=BEGINNING)

    assert store.names == ["good 2"]
    assert store.at == "3-0"
    assert group.dead == {}


async def test_a_dead_letter_of_a_follower_is_redelivered_only_to_it_under_its_first_id() -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(["refused"], store)
    await an_applier(group, store, is_follower=True).apply(entries, after=BEGINNING)
    again = LogEntry("9-0", group.dead["1-0"][2])
    store.refuses.clear()
    other = FakeStore()
    other.at = "1-0"

    await an_applier(FakeGroup(), store, is_follower=True).apply([again], after="1-0")
    await BatchApplier("other", FakeGroup(), other, is_follower=False).apply([again], after="1-0")

    assert [record.entry_id for record in store.applied] == ["1-0"]
    assert store.at == other.at == "9-0"
    assert other.applied == []


async def test_a_dead_letter_of_a_leader_is_redelivered_unchanged() -> None:
    group, store = FakeGroup(), FakeStore()
    entries = entries_of(["refused"], store)

    await an_applier(group, store).apply(entries, after=BEGINNING)

    assert group.dead["1-0"][2] == entries[0].data


def test_a_redelivered_entry_is_wrapped_once() -> None:
    first = wrap_redelivery(LogEntry("1-0", b"data"), "frequency")

    second = wrap_redelivery(LogEntry("7-0", first), "frequency")

    assert second == first
    again = unwrap_redelivery(second)
    assert again is not None
    assert (again.projection, again.entry_id, again.data) == ("frequency", "1-0", b"data")
