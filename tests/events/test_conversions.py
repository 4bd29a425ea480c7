"""Conversions in the event tables: whether one counts depends on its click, and not on what came first."""

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.core.ids import CampaignId, RequestId
from adloom.core.money import Micros
from adloom.events.conversions.attribute import CONVERSIONS_PER_OFFER_MAX, AttributionRules
from adloom.events.log.event import BEGINNING, Click, Conversion, Impression, LogEvent, Mark, encode_event
from adloom.events.log.stream import STREAM
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.events.rebuild.rebuild import EventTablesRebuild
from adloom.events.tables.erasure_store import erase_user
from adloom.events.tables.partition_store import PartitionStore
from adloom.events.tables.store import EVENT_TABLES, EventTables
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import NOW, REQUEST, UNKNOWN_ID, USER, a_click, a_conversion, an_impression
from tests.events.catalog import insert_campaign, insert_catalog

OFFER: Final[dict[str, Any]] = {"request_id": REQUEST, "slot": 0}
STRANGER: Final[dict[str, Any]] = {"request_id": RequestId(UUID(int=78)), "slot": 0}
DAY: Final = timedelta(days=1)
OTHER_CAMPAIGN: Final = CampaignId(UUID("01890000-0000-7000-8000-0000000000c2"))
VALUE: Final = 9_990_000
DUMP: Final = "SELECT (to_jsonb(it) - 'id')::text FROM events.{table} AS it ORDER BY 1"
TABLES: Final = ("banner_impressions", "banner_clicks", "conversions", "event_counts", "event_days")


class Ledger:
    """Gives events entry ids in order, and applies them batch by batch."""

    def __init__(self, pool: Pool, **options: Any) -> None:
        self.pool = pool
        self.tables = EventTables(pool, **options)
        self.cursor = BEGINNING
        self._sequence = 0

    async def apply(self, *events: LogEvent) -> BatchResult:
        records: list[DecodedEntry] = []
        for event in events:
            self._sequence += 1
            records.append(DecodedEntry(f"{int(NOW.timestamp() * 1000)}-{self._sequence}", event))
        await self.tables.read_cursor()
        after, self.cursor = self.cursor, records[-1].entry_id
        return await self.tables.commit(records, after=after, cursor=self.cursor)

    async def empty(self) -> None:
        for table in TABLES:
            await self.pool.execute(f"DELETE FROM events.{table}")  # noqa: S608 - our own names
        await self.pool.execute("DELETE FROM projection_cursors")
        self.cursor, self._sequence = BEGINNING, 0

    async def counted(self) -> tuple[int, int]:
        row = await self.pool.fetchrow(
            "SELECT coalesce(sum(conversions), 0)::int, coalesce(sum(conversion_micros), 0)::bigint"
            " FROM events.event_counts"
        )
        assert row is not None
        return row[0], row[1]

    async def marks(self) -> list[list[str]]:
        rows = await self.pool.fetch("SELECT marks FROM events.conversions ORDER BY entry_seq")
        return [row[0] or [] for row in rows]


@pytest.fixture
async def ledger(pool: Pool) -> Ledger:
    await insert_catalog(pool)
    return Ledger(pool)


async def test_a_conversion_counts_for_the_click_of_its_offer(ledger: Ledger) -> None:
    await ledger.apply(
        an_impression("i", **OFFER),
        a_click("c", **OFFER, country_code="DE", device_type="mobile", occurred_at=NOW - DAY),
    )

    result = await ledger.apply(a_conversion(occurred_at=NOW + timedelta(hours=1)))

    [row] = await ledger.pool.fetch(
        "SELECT hour, country_code, device_type, conversions, conversion_micros FROM events.event_counts"
        " WHERE conversions > 0"
    )
    assert result == BatchResult(counted=1)
    assert tuple(row) == (NOW + timedelta(hours=1), "DE", "mobile", 1, VALUE)
    assert await ledger.marks() == [[]]


async def test_a_day_with_a_conversion_is_rolled_up_again(ledger: Ledger) -> None:
    await ledger.apply(an_impression("i", **OFFER), a_click("c", **OFFER))

    await ledger.apply(a_conversion(), a_conversion("two", occurred_at=NOW + DAY))

    days = await ledger.pool.fetch("SELECT events, corrections FROM events.event_days ORDER BY day")
    assert [tuple(day) for day in days] == [(2, 1), (0, 1)]


async def test_the_same_conversion_counts_once(ledger: Ledger) -> None:
    await ledger.apply(an_impression("i", **OFFER), a_click("c", **OFFER), a_conversion(), a_conversion())

    result = await ledger.apply(a_conversion(occurred_at=NOW + DAY))

    assert result == BatchResult(repeated=1)
    assert await ledger.counted() == (1, VALUE)


async def test_two_orders_after_one_click_are_two_conversions(ledger: Ledger) -> None:
    await ledger.apply(an_impression("i", **OFFER), a_click("c", **OFFER))

    await ledger.apply(a_conversion("one"), a_conversion("two"))

    assert await ledger.counted() == (2, 2 * VALUE)


async def test_another_campaign_may_use_the_same_name(ledger: Ledger) -> None:
    await insert_campaign(ledger.pool, OTHER_CAMPAIGN)
    other = RequestId(UUID(int=77))
    await ledger.apply(
        an_impression("i", **OFFER),
        a_click("c", **OFFER),
        an_impression("j", request_id=other, slot=0, campaign_id=OTHER_CAMPAIGN),
        a_click("d", request_id=other, slot=0, campaign_id=OTHER_CAMPAIGN),
    )

    await ledger.apply(a_conversion(), a_conversion(campaign_id=OTHER_CAMPAIGN, request_id=other))

    assert await ledger.counted() == (2, 2 * VALUE)


@pytest.mark.parametrize(
    ("events", "mark"),
    [
        ([an_impression("i", **OFFER)], "no_click"),
        ([an_impression("i", **OFFER), a_click("c", request_id=REQUEST, slot=1)], "no_click"),
        ([an_impression("i", **OFFER), a_click("c", **OFFER, marks=(Mark.CRAWLER,))], "invalid_click"),
        ([a_click("c", **OFFER)], "invalid_click"),
        ([an_impression("i", **OFFER), a_click("c", **OFFER, marks=(Mark.TOKEN_EXPIRED,))], "invalid_click"),
    ],
    ids=["no click", "another slot", "a crawler", "no impression", "expired"],
)
async def test_a_conversion_without_a_valid_click_is_kept_with_the_reason(
    ledger: Ledger, events: Sequence[LogEvent], mark: str
) -> None:
    await ledger.apply(*events)

    result = await ledger.apply(a_conversion())

    assert result == BatchResult(counted=1)
    assert await ledger.marks() == [[mark]]
    assert await ledger.counted() == (0, 0)


async def test_a_conversion_long_after_its_click_does_not_count(ledger: Ledger) -> None:
    ledger.tables = EventTables(ledger.pool, attribution=AttributionRules(click_age_max=timedelta(days=7)))
    await ledger.apply(an_impression("i", **OFFER), a_click("c", **OFFER))

    await ledger.apply(
        a_conversion("in time", occurred_at=NOW + 7 * DAY),
        a_conversion("late", occurred_at=NOW + 7 * DAY + timedelta(seconds=1)),
    )

    assert await ledger.marks() == [[], ["click_too_old"]]
    assert await ledger.counted() == (1, VALUE)


async def test_a_value_in_another_currency_is_not_added_up(ledger: Ledger) -> None:
    ledger.tables = EventTables(ledger.pool, attribution=AttributionRules(currency="EUR"))
    await ledger.apply(an_impression("i", **OFFER), a_click("c", **OFFER))

    await ledger.apply(
        a_conversion("one", currency="EUR"), a_conversion("two", currency="USD"), a_conversion("three")
    )

    assert await ledger.marks() == [[], ["other_currency"], []]
    assert await ledger.counted() == (3, 2 * VALUE)


async def test_what_is_not_in_the_catalog_converts_nothing(ledger: Ledger) -> None:
    result = await ledger.apply(a_conversion(campaign_id=CampaignId(UNKNOWN_ID)))

    assert result == BatchResult(dropped=1)


async def test_a_token_brings_a_few_conversions_and_not_a_million(ledger: Ledger) -> None:
    await ledger.apply(an_impression("i", **OFFER), a_click("c", **OFFER))
    extra = 5
    many = [a_conversion(f"order {number}") for number in range(CONVERSIONS_PER_OFFER_MAX + extra)]

    results = [await ledger.apply(*many[:7]), await ledger.apply(*many[7:]), await ledger.apply(*many)]

    assert results[0] + results[1] == BatchResult(counted=CONVERSIONS_PER_OFFER_MAX, dropped=extra)
    assert results[2] == BatchResult(repeated=CONVERSIONS_PER_OFFER_MAX, dropped=extra)
    assert (await ledger.counted())[0] == CONVERSIONS_PER_OFFER_MAX


# --- the law: the order of the log makes no difference

# Requests, and when their offers were made.
REQUESTS: Final = {RequestId(UUID(int=1)): NOW - 35 * DAY, RequestId(UUID(int=2)): NOW}
LOST: Final = RequestId(UUID(int=3))


@st.composite
def happenings(draw: st.DrawFn) -> LogEvent:
    request_id, slot = draw(st.sampled_from(sorted(REQUESTS))), draw(st.integers(0, 1))
    kind = draw(st.sampled_from([Impression, Click, Conversion]))
    offered_at = REQUESTS[request_id]
    if kind is Conversion:
        return a_conversion(
            draw(st.sampled_from("abc")),
            request_id=request_id,
            slot=slot,
            offered_at=int(offered_at.timestamp()),
            occurred_at=offered_at + draw(st.sampled_from([timedelta(minutes=2), DAY, 35 * DAY])),
            value=Micros(draw(st.integers(0, 9))),
            by_key=draw(st.booleans()),
        )
    marks = draw(st.sampled_from([(), (), (Mark.CRAWLER,)]))
    # Named by the offer, as events with a token are.
    name = f"{request_id.int}:{slot}{':flagged' if marks else ''}"
    build = an_impression if kind is Impression else a_click
    occurred_at = offered_at + draw(st.sampled_from([timedelta(), timedelta(minutes=1)]))
    return build(name, request_id=request_id, slot=slot, marks=marks, occurred_at=occurred_at)


def count_plainly(events: Sequence[LogEvent]) -> tuple[int, int]:
    """Count in the simplest way: look at everything at once."""
    seen = {(one.request_id, one.slot) for one in events if isinstance(one, Impression)}
    clicks: dict[tuple[UUID | None, int | None], datetime] = {}
    for one in events:
        if isinstance(one, Click) and not one.marks and (one.request_id, one.slot) in seen:
            clicks.setdefault((one.request_id, one.slot), one.occurred_at)
    reports: dict[tuple[Any, ...], Conversion] = {}
    for one in events:
        if isinstance(one, Conversion):
            reports.setdefault((one.name, one.request_id, one.slot, one.by_key), one)
    named: dict[bytes, Conversion] = {}
    for one in sorted(reports.values(), key=lambda one: not one.by_key):  # Stable: otherwise the first wins.
        clicked = clicks.get((one.request_id, one.slot))
        if clicked is not None and one.occurred_at - clicked <= 30 * DAY:
            named.setdefault(one.name, one)
    return len(named), sum(one.value for one in named.values())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(events=st.lists(happenings(), min_size=1, max_size=14), cuts=st.sets(st.integers(1, 13), max_size=5))
async def test_whatever_comes_first_the_same_conversions_count(
    ledger: Ledger, events: list[LogEvent], cuts: set[int]
) -> None:
    await ledger.empty()
    bounds = sorted({cut for cut in cuts if cut < len(events)} | {0, len(events)})

    for start, end in itertools.pairwise(bounds):
        await ledger.apply(*events[start:end])

    assert await ledger.counted() == count_plainly(events)


# --- nobody takes the name of an order from the shop


@pytest.fixture
async def with_two_clicks(ledger: Ledger) -> Ledger:
    """The offer of the shop's customer is OFFER, that of a stranger STRANGER: both were clicked."""
    for name, offer in (("a", OFFER), ("b", STRANGER)):
        await ledger.apply(an_impression(f"i{name}", **offer), a_click(f"c{name}", **offer))
    return ledger


async def test_a_conversion_that_does_not_count_claims_no_name(ledger: Ledger) -> None:
    await ledger.apply(an_impression("i", **OFFER), a_click("c", **OFFER))

    await ledger.apply(a_conversion(request_id=LOST, value=Micros(1)))
    await ledger.apply(a_conversion())

    assert await ledger.counted() == (1, VALUE)
    assert await ledger.marks() == [["no_click"], []]


@pytest.mark.parametrize("by_keys", [(False, True), (True, False)], ids=["after", "before"])
async def test_the_advertiser_s_report_takes_the_place_of_a_stranger_s(
    with_two_clicks: Ledger, by_keys: tuple[bool, bool]
) -> None:
    for by_key in by_keys:
        offer = OFFER if by_key else STRANGER
        await with_two_clicks.apply(
            a_conversion(**offer, by_key=by_key, value=Micros(VALUE if by_key else 1))
        )

    assert await with_two_clicks.counted() == (1, VALUE)
    assert await with_two_clicks.marks() == [[] if by_key else ["repeated"] for by_key in by_keys]


async def test_the_advertiser_s_report_has_the_right_value_of_the_visitor_s_own(
    with_two_clicks: Ledger,
) -> None:
    await with_two_clicks.apply(a_conversion(value=Micros(10**15), currency="USD"))
    days = "SELECT corrections FROM events.event_days"
    before = await with_two_clicks.pool.fetchval(days)

    await with_two_clicks.apply(a_conversion(by_key=True))

    assert await with_two_clicks.counted() == (1, VALUE)
    assert await with_two_clicks.pool.fetchval(days) > before  # So its statistics are rolled up again.


async def test_reports_without_a_key_do_not_use_up_an_offer_for_those_with_one(
    with_two_clicks: Ledger,
) -> None:
    await with_two_clicks.apply(
        *(a_conversion(f"order {number}") for number in range(CONVERSIONS_PER_OFFER_MAX))
    )

    assert await with_two_clicks.apply(a_conversion("real", by_key=True)) == BatchResult(counted=1)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
async def test_impression_click_and_conversion_come_in_any_order(
    ledger: Ledger, order: tuple[int, ...]
) -> None:
    events = [an_impression("i", **OFFER), a_click("c", **OFFER), a_conversion()]

    for place in order:
        await ledger.apply(events[place])

    assert await ledger.counted() == (1, VALUE)
    assert await ledger.marks() == [[]]


# --- retention, erasure, replay


async def test_conversions_are_dropped_with_their_day(ledger: Ledger) -> None:
    old = NOW - 400 * DAY
    await ledger.apply(a_conversion("old", occurred_at=old), a_conversion("new"))
    await ledger.pool.execute("UPDATE events.event_days SET last_entry_ms = 0")

    dropped = await PartitionStore(ledger.pool).drop_old(
        before=(NOW - 100 * DAY).date(), kept_days=100, written_before=NOW, count_max=4
    )

    assert dropped == [old.date()]
    assert await ledger.pool.fetchval("SELECT count(*) FROM events.conversions") == 1


async def test_nothing_of_an_erased_user_is_in_a_conversion(ledger: Ledger) -> None:
    await ledger.apply(
        an_impression("i", **OFFER, user_id=USER), a_click("c", **OFFER, user_id=USER), a_conversion(USER.hex)
    )

    async with ledger.pool.acquire() as connection, connection.transaction():
        await erase_user(connection, USER, projections=[EVENT_TABLES], now=NOW)

    kept = await ledger.pool.fetchval("SELECT string_agg(it::text, ' ') FROM events.conversions AS it")
    assert USER.hex not in kept
    assert str(USER) not in kept
    assert await ledger.counted() == (1, VALUE)


async def dump(pool: Pool) -> list[list[str]]:
    return [[row[0] for row in await pool.fetch(DUMP.format(table=table))] for table in TABLES]


@pytest.mark.parametrize("kept_by_the_log", [8, 7, 5, 3, 1, 0], ids=str)
async def test_a_replay_changes_no_conversion(pool: Pool, valkey: Valkey, kept_by_the_log: int) -> None:
    await insert_catalog(pool)
    ledger = Ledger(pool)
    events = [
        a_conversion("early", request_id=LOST, value=Micros(1)),
        a_conversion("early"),
        an_impression("i", **OFFER),
        a_click("c", **OFFER),
        a_conversion("late", occurred_at=NOW + DAY, currency="USD"),
        a_conversion("lost", request_id=LOST),
        a_conversion("early", by_key=True),
        a_conversion("lost"),
    ]
    for event in events:
        await ledger.apply(event)
    for number, event in list(enumerate(events, start=1))[8 - kept_by_the_log :]:
        await valkey.xadd(STREAM, {"e": encode_event(event)}, id=f"{int(NOW.timestamp() * 1000)}-{number}")
    before = await dump(pool)

    rebuilt = await EventTablesRebuild(pool, LogScanner(valkey), lead=timedelta()).run()

    assert await dump(pool) == before
    assert (rebuilt.days_corrected, rebuilt.copied) == (0, 8 - kept_by_the_log)
