"""Names remembered beside the tables: never one taken for new that is not, whoever else writes."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given

from adloom.events.log.event import Event
from adloom.events.projections.projection import BatchResult, DecodedEntry
from adloom.events.tables.apply_batch import IMPRESSIONS, Additions, EventBatch, StoredState, apply_batch
from adloom.events.tables.known_names import SEGMENTS_MAX, DedupFilter
from adloom.events.tables.name_filter import NameFilter
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool
from tests.events.builders import BANNER, NOW, PLACEMENT, a_click, an_impression
from tests.events.catalog import insert_catalog

TODAY = NOW.date()
YESTERDAY = TODAY - timedelta(days=1)
TABLE = 4711
NOTHING = Additions()


@given(st.lists(st.sets(st.text(max_size=4))), st.sets(st.text(max_size=4)))
def test_what_was_taken_in_is_always_found(batches: list[set[str]], others: set[str]) -> None:
    names = NameFilter(segment_names=5)

    for batch in batches:
        names.add(batch, last_day=TODAY)

    known = {name for batch in batches for name in batch}
    assert known <= set(names.among([*known, *others]))


def test_few_strangers_are_taken_for_known() -> None:
    names = NameFilter(segment_names=10_000)
    names.add([f"known {number}" for number in range(10_000)], last_day=TODAY)

    assert len(names.among([f"strange {number}" for number in range(10_000)])) < 100


def test_segments_go_with_the_last_of_their_days() -> None:
    names = NameFilter(segment_names=1)
    names.add(["old"], last_day=YESTERDAY)
    names.add(["new"], last_day=TODAY)

    names.forget_before(TODAY)

    assert names.among(["old", "new"]) == ["new"]
    assert names.segments == 1


def rows(*names: str, day: date = TODAY) -> Additions:
    """Make the rows of impressions with some names."""
    at = datetime.combine(day, datetime.min.time(), UTC)
    events = [("1-0", an_impression(name, occurred_at=at)) for name in names]
    known = StoredState(banners={BANNER.int: 1}, placements={PLACEMENT.int: 1})
    return apply_batch(EventBatch(impressions=events, clicks=[]), known)


def a_memory() -> DedupFilter:
    """Make a memory that has seen the first batch ever."""
    names = DedupFilter(batch_min=1, chunk_names=2)
    names.begin(cursor="1-0", table=TABLE)
    names.add_batch("1-0", "2-0", rows("a", "b"), frozenset())
    names.begin(cursor="2-0", table=TABLE)
    return names


def doubtful(names: DedupFilter, *asked: str, days: Sequence[date] = (TODAY,)) -> Sequence[str]:
    return names.select_doubtful(IMPRESSIONS, asked, days)


def test_only_what_may_be_known_is_doubtful() -> None:
    assert doubtful(a_memory(), "a", "c", "b") == ["a", "b"]


@pytest.mark.parametrize(("cursor", "table"), [("3-0", TABLE), ("2-0", TABLE + 1)])
def test_everything_is_doubtful_when_somebody_else_has_written(cursor: str, table: int) -> None:
    names = a_memory()

    names.begin(cursor=cursor, table=table)

    assert doubtful(names, "c") == ("c",)


def test_everything_is_doubtful_while_a_day_is_not_read() -> None:
    assert doubtful(a_memory(), "c", days=[YESTERDAY, TODAY]) == ("c",)


def test_a_batch_without_events_moves_on_and_forgets_nothing() -> None:
    names = a_memory()

    names.add_batch("2-0", "5-0", NOTHING, frozenset())
    names.begin(cursor="5-0", table=TABLE)

    assert doubtful(names, "c") == []


def test_days_are_read_to_their_end_the_newest_first() -> None:
    names = a_memory()
    days = [YESTERDAY - timedelta(days=1), YESTERDAY, TODAY]
    read: list[tuple[str, date, str]] = []

    while part := names.next_unread(rows("x"), days):
        read.append((part.kind, part.day, part.after))
        is_begun = part.after or part.kind != IMPRESSIONS or part.day != YESTERDAY
        names.add_read(part, [] if is_begun else ["y", "z"])

    assert read[:3] == [
        (IMPRESSIONS, YESTERDAY, ""),
        (IMPRESSIONS, YESTERDAY, "z"),
        ("banner_clicks", YESTERDAY, ""),
    ]
    assert {day for _, day, _ in read} == set(days[:2])
    assert doubtful(names, "y", "q", days=days) == ["y"]


def test_what_was_read_for_a_memory_that_is_gone_is_not_taken_for_a_part_of_the_next() -> None:
    names = a_memory()
    part = names.next_unread(rows("x"), [YESTERDAY])
    assert part is not None

    names.begin(cursor="9-0", table=TABLE)
    names.add_read(part, [])

    assert doubtful(names, "c", days=[YESTERDAY]) == ("c",)


def test_days_that_are_no_longer_looked_into_are_read_again_when_they_are() -> None:
    names = a_memory()

    names.drop_before(TODAY + timedelta(days=1))

    assert doubtful(names, "c", days=[]) == []
    assert doubtful(names, "a") == ("a",)


def test_where_there_is_no_room_nothing_more_is_read() -> None:
    names = DedupFilter(segment_names=1, batch_min=1)
    names.begin(cursor="0-0", table=TABLE)
    for number in range(SEGMENTS_MAX):
        assert names.next_unread(rows("x"), [YESTERDAY]) is not None
        names.add_batch(f"{number}-0", f"{number + 1}-0", rows(f"{number}"), frozenset())

    assert names.next_unread(rows("x"), [YESTERDAY]) is None


class Workers:
    """Two workers, of whom one may take over from the other."""

    def __init__(self, pool: Pool) -> None:
        self.names = DedupFilter(batch_min=1, chunk_names=3)
        self.remembering = EventTables(pool, names=self.names)
        self.other = EventTables(pool)
        self._entries = 0

    async def fold(self, worker: EventTables, *events: Event) -> BatchResult:
        millis = int(NOW.timestamp() * 1000)
        records = [
            DecodedEntry(f"{millis}-{number}", event)
            for number, event in enumerate(events, start=self._entries + 1)
        ]
        self._entries += len(events)
        return await worker.commit(records, after=await worker.read_cursor(), cursor=records[-1].entry_id)


async def test_a_worker_that_takes_over_reads_what_the_other_has_written(pool: Pool) -> None:
    await insert_catalog(pool)
    workers = Workers(pool)
    before = [
        make(f"{number}", occurred_at=NOW - timedelta(hours=number))
        for number in range(20)
        for make in (an_impression, a_click)
    ]
    await workers.fold(workers.other, *before)
    fresh = 0
    while doubtful(workers.names, "strange", days=[YESTERDAY, TODAY]):
        fresh += 1
        assert await workers.fold(workers.remembering, an_impression(f"fresh {fresh}")) == BatchResult(
            counted=1
        )

    assert fresh > 10
    assert doubtful(workers.names, *(f"{number}" for number in range(20)), days=[YESTERDAY, TODAY])
    assert await workers.fold(workers.remembering, *before) == BatchResult(repeated=40)
    assert await workers.fold(workers.other, a_click("by the other")) == BatchResult(counted=1)
    assert await workers.fold(workers.remembering, a_click("by the other")) == BatchResult(repeated=1)


async def test_a_day_that_was_dropped_has_no_names(pool: Pool) -> None:
    await insert_catalog(pool)
    workers = Workers(pool)
    await workers.fold(workers.other, an_impression("old", occurred_at=NOW - timedelta(days=1)))
    for kind in ("impressions", "clicks"):
        await pool.execute(f"DROP TABLE events.banner_{kind}_{YESTERDAY:%Y%m%d}")

    for number in range(5):
        await workers.fold(workers.remembering, an_impression(f"{number}"))

    assert doubtful(workers.names, "strange", days=[YESTERDAY, TODAY]) == []
