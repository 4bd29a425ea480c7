"""The dedup filter: it never takes a known id for a new one, even if another worker writes."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

import hypothesis.strategies as st
import pytest
from hypothesis import given

from adloom.events.log.event import Event, Impression
from adloom.events.log.names import FLAGGED, OFFER_NAMES
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.events.tables.apply_batch import IMPRESSIONS, Additions, TableState, apply_batch, split_by_kind
from adloom.events.tables.dedup import SEGMENTS_MAX, DedupFilter, IdFilter
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool
from tests.events.builders import BANNER, NOW, PLACEMENT, a_click, an_impression
from tests.events.catalog import insert_catalog

TODAY = NOW.date()
YESTERDAY = TODAY - timedelta(days=1)
TABLE = 4711
NOTHING = Additions()


@given(st.lists(st.sets(st.text(max_size=4))), st.sets(st.text(max_size=4)))
def test_an_id_that_was_added_is_always_found(batches: list[set[str]], others: set[str]) -> None:
    ids = IdFilter(segment_ids=5)

    for batch in batches:
        ids.add(batch, last_day=TODAY)

    known = {one for batch in batches for one in batch}
    assert known <= ids.select([*known, *others])


def test_few_new_ids_are_false_positives() -> None:
    ids = IdFilter(segment_ids=10_000)
    ids.add([f"known {number}" for number in range(10_000)], last_day=TODAY)

    assert len(ids.select([f"strange {number}" for number in range(10_000)])) < 100


def test_the_first_segment_is_small_and_the_next_one_is_not() -> None:
    ids = IdFilter(segment_ids=320)

    counts = list[int]()
    for number in range(331):
        ids.add([f"known {number}"], last_day=TODAY)
        counts.append(ids.segment_count)

    assert counts == [1] * 10 + [2] * 320 + [3]


def test_a_segment_is_dropped_with_the_last_of_its_days() -> None:
    ids = IdFilter(segment_ids=1)
    ids.add(["old"], last_day=YESTERDAY)
    ids.add(["new"], last_day=TODAY)

    ids.drop_before(TODAY)

    assert ids.select(["old", "new"]) == {"new"}
    assert ids.segment_count == 1


def rows(*ids: str, day: date = TODAY) -> Additions:
    """Build the rows of impressions with some ids."""
    at = datetime.combine(day, datetime.min.time(), UTC)
    events = [DecodedEntry("1-0", an_impression(one, occurred_at=at)) for one in ids]
    known = TableState(banners={BANNER.int: 1}, placements={PLACEMENT.int: 1})
    return apply_batch(split_by_kind(events), known)


def a_filter() -> DedupFilter:
    """Build a filter that has seen the first batch ever."""
    dedup = DedupFilter(batch_min=1, chunk_ids=2)
    dedup.begin(cursor="1-0", table=TABLE)
    dedup.add_batch("1-0", "2-0", rows("a", "b"), frozenset())
    dedup.begin(cursor="2-0", table=TABLE)
    return dedup


def doubtful(dedup: DedupFilter, *asked: str, days: Sequence[date] = (TODAY,)) -> set[str]:
    return set(dedup.select_doubtful(IMPRESSIONS, asked, days))


def test_only_ids_that_may_be_known_are_doubtful() -> None:
    assert doubtful(a_filter(), "a", "c", "b") == {"a", "b"}


@pytest.mark.parametrize(("cursor", "table"), [("3-0", TABLE), ("2-0", TABLE + 1)])
def test_every_id_is_doubtful_after_another_worker_has_written(cursor: str, table: int) -> None:
    dedup = a_filter()

    dedup.begin(cursor=cursor, table=table)

    assert doubtful(dedup, "c") == {"c"}


def test_every_id_is_doubtful_until_all_days_are_read() -> None:
    assert doubtful(a_filter(), "c", days=[YESTERDAY, TODAY]) == {"c"}


def test_a_batch_without_events_clears_nothing() -> None:
    dedup = a_filter()

    dedup.add_batch("2-0", "5-0", NOTHING, frozenset())
    dedup.begin(cursor="5-0", table=TABLE)

    assert doubtful(dedup, "c") == set()


def test_days_are_read_to_their_end_the_newest_first() -> None:
    dedup = a_filter()
    days = [YESTERDAY - timedelta(days=1), YESTERDAY, TODAY]
    read: list[tuple[str, date, str]] = []

    while part := dedup.find_next_unread(rows("x"), days):
        read.append((part.kind, part.day, part.after))
        is_begun = part.after or part.kind != IMPRESSIONS or part.day != YESTERDAY
        dedup.add_read(part, [] if is_begun else ["y", "z"])

    assert read[:3] == [
        (IMPRESSIONS, YESTERDAY, ""),
        (IMPRESSIONS, YESTERDAY, "z"),
        ("banner_clicks", YESTERDAY, ""),
    ]
    assert {day for _, day, _ in read} == set(days[:2])
    assert doubtful(dedup, "y", "q", days=days) == {"y"}


def test_ids_read_for_a_discarded_filter_are_not_added_to_the_next() -> None:
    dedup = a_filter()
    part = dedup.find_next_unread(rows("x"), [YESTERDAY])
    assert part is not None

    dedup.begin(cursor="9-0", table=TABLE)
    dedup.add_read(part, [])

    assert doubtful(dedup, "c", days=[YESTERDAY]) == {"c"}


def test_a_day_that_was_dropped_from_the_filter_is_read_again() -> None:
    dedup = a_filter()

    dedup.drop_before(TODAY + timedelta(days=1))

    assert doubtful(dedup, "c", days=[]) == set()
    assert doubtful(dedup, "a") == {"a"}


def test_a_full_filter_reads_no_more_ids() -> None:
    dedup = DedupFilter(segment_ids=1, batch_min=1)
    dedup.begin(cursor="0-0", table=TABLE)
    for number in range(SEGMENTS_MAX):
        assert dedup.find_next_unread(rows("x"), [YESTERDAY]) is not None
        dedup.add_batch(f"{number}-0", f"{number + 1}-0", rows(f"{number}"), frozenset())

    assert dedup.find_next_unread(rows("x"), [YESTERDAY]) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.sampled_from(["", FLAGGED, "older"]))))
def test_an_offer_with_a_row_is_always_doubtful_however_its_event_is_named(
    events: list[tuple[int, int, str]],
) -> None:
    dedup = DedupFilter(batch_min=1)
    dedup.begin(cursor="0-0", table=TABLE)
    shown = [
        DecodedEntry(f"1-{place}", an_offered(request, slot, f"{end}{place}" if end == "older" else end))
        for place, (request, slot, end) in enumerate(events)
    ]
    known = TableState(banners={BANNER.int: 1}, placements={PLACEMENT.int: 1})

    dedup.add_batch("0-0", "2-0", apply_batch(split_by_kind(shown), known), frozenset())

    names = {f"{OFFER_NAMES}{UUID(int=request)}:{slot}" for request, slot, _ in events}
    assert doubtful(dedup, *names) == names


def an_offered(request: int, slot: int, end: str = "") -> Impression:
    """Build an impression of an offer, which names it unless an older version named it otherwise."""
    name = f"{OFFER_NAMES}{UUID(int=request)}:{slot}{end}"
    is_older = end not in {"", FLAGGED}
    return an_impression(end if is_older else name, request_id=UUID(int=request), slot=slot)


class Workers:
    """Two workers, one of which may take over from the other."""

    def __init__(self, pool: Pool) -> None:
        self.dedup = DedupFilter(batch_min=1, chunk_ids=3)
        self.with_filter = EventTables(pool, dedup=self.dedup)
        self.other = EventTables(pool)
        self._entries = 0

    async def apply(self, worker: EventTables, *events: Event) -> BatchResult:
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
    await workers.apply(workers.other, *before)
    fresh = 0
    while doubtful(workers.dedup, "strange", days=[YESTERDAY, TODAY]):
        fresh += 1
        assert await workers.apply(workers.with_filter, an_impression(f"fresh {fresh}")) == BatchResult(
            counted=1
        )

    assert fresh > 10
    assert doubtful(workers.dedup, *(f"{number}" for number in range(20)), days=[YESTERDAY, TODAY])
    assert await workers.apply(workers.with_filter, *before) == BatchResult(repeated=40)
    assert await workers.apply(workers.other, a_click("by the other")) == BatchResult(counted=1)
    assert await workers.apply(workers.with_filter, a_click("by the other")) == BatchResult(repeated=1)


async def test_second_events_and_lone_clicks_of_offers_are_found_by_a_full_filter(pool: Pool) -> None:
    await insert_catalog(pool)
    workers = Workers(pool)
    click = a_click("an older name", request_id=UUID(int=3), slot=0)
    await workers.apply(workers.other, an_offered(1, 0), an_offered(2, 0, "an older name"), click)
    while doubtful(workers.dedup, "strange", days=[TODAY]):
        await workers.apply(workers.with_filter, an_impression(f"{uuid4()}"))

    await workers.apply(workers.with_filter, an_offered(1, 0, FLAGGED), an_offered(2, 0), an_offered(3, 0))
    await workers.apply(workers.with_filter, an_offered(1, 1), an_offered(3, 0, FLAGGED))

    rows = await pool.fetch(
        """
        SELECT request_id, slot, marks FROM events.banner_impressions
         WHERE request_id IS NOT NULL ORDER BY entry_seq
        """
    )
    second = ["second_impression"]
    assert [(row["request_id"].int, row["slot"], row["marks"]) for row in rows] == [
        (1, 0, None),
        (2, 0, None),
        (1, 0, second),
        (2, 0, second),
        (3, 0, None),
        (1, 1, None),
        (3, 0, second),
    ]
    assert await pool.fetchval("SELECT marks FROM events.banner_clicks") is None


async def test_a_day_that_was_dropped_from_the_tables_has_no_ids(pool: Pool) -> None:
    await insert_catalog(pool)
    workers = Workers(pool)
    await workers.apply(workers.other, an_impression("old", occurred_at=NOW - timedelta(days=1)))
    for kind in ("impressions", "clicks"):
        await pool.execute(f"DROP TABLE events.banner_{kind}_{YESTERDAY:%Y%m%d}")

    for number in range(5):
        await workers.apply(workers.with_filter, an_impression(f"{number}"))

    assert doubtful(workers.dedup, "strange", days=[YESTERDAY, TODAY]) == set()
