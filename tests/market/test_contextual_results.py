"""Results of contextual slots: what the event tables believe, counted once, in whatever order it comes."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import BannerId, RequestId, SiteId
from adloom.core.money import Micros
from adloom.events.followers.counted_store import CountedStore
from adloom.events.log.event import Click, Impression, LogEvent, Mark
from adloom.events.ports import CursorMovedError, DecodedEntry, ProjectionStore
from adloom.events.tables.store import EventTables
from adloom.market import ranker
from adloom.market.auctioneer.state import FloorTick
from adloom.market.messages import LoadResults, RecordResults
from adloom.market.results.follower import ResultsFollower
from adloom.market.results.publish import publish_results
from adloom.market.results.store import ContextualResults
from adloom.market.results.window import (
    BANNERS_MAX,
    NO_RESULTS,
    WINDOW,
    ResultRow,
    ResultWindows,
    SiteResults,
    build_results,
)
from adloom.market.routing import RANKER
from adloom.market.store import MarketTables, MarketWriter
from adloom.runtime.actors.actor import Address, RecordRow
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background.site_results import ResultsLoader
from tests.events.builders import BANNER as FIRST_BANNER
from tests.events.builders import NOW, OTHER_BANNER, PLACEMENT, a_click, an_impression
from tests.events.catalog import insert_banner, insert_catalog

BANNERS = (FIRST_BANNER, OTHER_BANNER)
CATEGORIES = ("483", "539", "filler")
SITE = SiteId(UUID(int=7))

Truth = Counter[tuple[BannerId, str, datetime, str]]


@pytest.fixture
async def site_pool(pool: Pool) -> Pool:
    await insert_catalog(pool)
    await insert_banner(pool, OTHER_BANNER)
    key = await pool.fetchval(
        "INSERT INTO sites (public_id, name, domain, created_at, updated_at) VALUES ($1, 'A', 'a.test', $2, $2) RETURNING id",
        SITE,
        NOW,
    )
    await pool.execute("UPDATE placements SET site_id = $1 WHERE public_id = $2", key, PLACEMENT)
    return pool


def some_events(chance: Random, offers: int) -> list[LogEvent]:
    """Events of contextual and other offers in any order: seen, clicked, twice, too soon, unbound, late."""
    events: list[LogEvent] = []
    for number in range(offers):
        at = NOW - timedelta(seconds=chance.randrange(600))
        fields: dict[str, Any] = {
            "request_id": RequestId(UUID(int=number + 1)),
            "slot": 0,
            "banner_id": chance.choice(BANNERS),
            "category": chance.choice((*CATEGORIES, None)),
            "charge": Micros(chance.randrange(9_000)),
            "occurred_at": at,
            "received_at": at,
        }
        for place in range(chance.randrange(3)):
            marks = chance.choice(((), (), (Mark.TOO_SOON,), (Mark.OCCURRED_AT_REPLACED,)))
            events.append(an_impression(f"i{number}-{place}", **fields, marks=marks))
        for place in range(chance.randrange(3)):
            marks = chance.choice(((), (), (Mark.DATA_CENTER,)))
            events.append(a_click(f"c{number}-{place}", **fields, marks=marks))
    events += [an_impression(f"u{number}", marks=(Mark.UNBOUND,)) for number in range(3)]
    events += chance.sample(events, len(events) // 5)  # Repeated by a browser.
    chance.shuffle(events)
    return events


def log_of(events: Sequence[LogEvent]) -> list[DecodedEntry]:
    return [DecodedEntry(f"{1_000 + number}-0", event) for number, event in enumerate(events)]


class LogOnDisk:
    """A log that stores apply piece by piece."""

    def __init__(self, entries: Sequence[DecodedEntry]) -> None:
        self.entries = entries
        self.applied: dict[int, int] = {}

    async def apply(self, store: ProjectionStore, until: int) -> None:
        first = self.applied.get(id(store), 0)
        if until > first:
            records = self.entries[first:until]
            after = await store.read_cursor()
            await store.commit(records, after=after, cursor=records[-1].entry_id)
            self.applied[id(store)] = until


async def count_plainly(pool: Pool, events: Sequence[LogEvent]) -> Truth:
    """Count the rows of the event tables, with the category that the events of their offers name."""
    categories = {
        one.request_id: one.category
        for one in events
        if isinstance(one, Impression | Click) and one.request_id
    }
    found = Truth()
    for table in ("impressions", "clicks"):
        rows = await pool.fetch(
            f"""SELECT banner.public_id, it.request_id, date_trunc('minute', it.occurred_at) FROM events.banner_{table} AS it
                  JOIN banners AS banner ON banner.id = it.banner_id WHERE it.is_valid AND it.request_id IS NOT NULL"""  # noqa: S608 - one of two
        )
        for banner_id, request_id, minute in rows:
            if (category := categories[request_id]) is not None:
                found[BannerId(banner_id), category, minute, table] += 1
    return found


async def read_results(pool: Pool) -> Truth:
    rows = await pool.fetch(
        """SELECT banner.public_id, it.category, it.minute, sum(it.impressions), sum(it.clicks)
             FROM contextual_results AS it JOIN banners AS banner ON banner.id = it.banner_id GROUP BY 1, 2, 3"""
    )
    found = Truth()
    for banner_id, category, minute, impressions, clicks in rows:
        found[BannerId(banner_id), category, minute, "impressions"] = impressions
        found[BannerId(banner_id), category, minute, "clicks"] = clicks
    return +found


@pytest.mark.parametrize("seed", range(6))
async def test_results_are_a_plain_count_over_the_ledger_in_any_order_of_batches(
    site_pool: Pool, seed: int
) -> None:
    chance = Random(seed)  # noqa: S311 - no secret is made of it
    events = some_events(chance, 40)
    log, tables = LogOnDisk(log_of(events)), EventTables(site_pool)
    results = ContextualResults(site_pool, CountedStore(site_pool))
    done = 0

    while done < len(log.entries):
        done = min(len(log.entries), done + chance.randrange(1, 30))
        await log.apply(tables, done)
        # The follower may be anywhere behind the tables.
        await log.apply(results, chance.randrange(log.applied.get(id(results), 0), done + 1))
    await log.apply(results, done)

    assert await read_results(site_pool) == await count_plainly(site_pool, events)
    assert sum((await read_results(site_pool)).values()) > 10


async def test_a_batch_that_comes_twice_counts_once(site_pool: Pool) -> None:
    [entry] = log_of([an_impression(request_id=RequestId(UUID(int=1)), slot=0, category="483")])
    log, results = LogOnDisk([entry]), ContextualResults(site_pool, CountedStore(site_pool))
    await log.apply(EventTables(site_pool), 1)
    await log.apply(results, 1)

    with pytest.raises(CursorMovedError):
        await results.commit([entry], after="0-0", cursor=entry.entry_id)

    assert (await read_results(site_pool)).total() == 1


# The last hour.

rows = st.lists(
    st.tuples(
        st.integers(1, 2), st.integers(1, 3), st.integers(0, 150), st.integers(0, 5), st.integers(0, 5)
    ),
    max_size=30,
)


@given(rows, st.lists(st.integers(0, 150), max_size=5).map(sorted))
def test_a_window_has_the_counts_of_the_last_sixty_minutes(
    added: list[tuple[int, int, int, int, int]], looks: list[int]
) -> None:
    windows = ResultWindows()
    known = [
        ResultRow(1, SiteId(UUID(int=site)), banner, "483", NOW + timedelta(minutes=minute), seen, clicked)
        for site, banner, minute, seen, clicked in added
    ]
    windows.add(known)
    for minute in looks:
        now = NOW + timedelta(minutes=minute, seconds=30)
        windows.drop_old(now)
        windows.take_changed()
        for site in (1, 2):
            site_id = SiteId(UUID(int=site))
            inside = [row for row in known if row.site_id == site_id and row.minute > now - WINDOW]
            expected = {
                banner: (
                    sum(row.impressions for row in inside if row.banner_key == banner),
                    sum(row.clicks for row in inside if row.banner_key == banner),
                )
                for banner in {row.banner_key for row in inside}
            }
            assert windows.sum_up(site_id) == expected


def test_a_site_has_a_bound_and_a_click_rate_of_its_own() -> None:
    many = {key: (key, 0) for key in range(1, BANNERS_MAX + 10)}

    assert min(build_results(many).banners) == 10
    assert build_results({}).click_rate == NO_RESULTS.click_rate
    assert build_results({1: (100_000, 2_000)}).click_rate == pytest.approx(0.02, rel=0.02)
    assert build_results({1: (0, 5)}).click_rate < 0.01, "late clicks without impressions are no rate"


# Rankers, through restarts.


class RankerHost:
    """Runs rankers; what is not recorded is lost when it is killed."""

    def __init__(self, pool: Pool, clock: ManualClock) -> None:
        self.pool, self.clock = pool, clock
        self.is_full = False
        self.told: list[tuple[Address, msgspec.Struct]] = []
        self.states: dict[Address, Any] = {}

    def tell(self, address: Address, message: msgspec.Struct) -> bool:
        if not self.is_full:
            self.told.append((address, message))
        return not self.is_full

    async def wake_again(self) -> None:
        """Let rankers be forgotten, as idle ones are, and then asked for a quote."""
        addresses = list(self.states)
        self.states.clear()
        for address in addresses:
            self.tell(address, ranker.CheckClock())
        await self.run(is_flushed=False)

    async def run(self, *, is_flushed: bool) -> None:
        for address, message in self.told:
            if address.kind != RANKER:
                continue
            if address not in self.states:
                self.states[address] = ranker.make_ranker(address.key, NOW)
                first = await MarketTables(self.pool).load_first_messages([address])
                for one in first.get(address, ()):
                    assert isinstance(one, LoadResults | RecordResults)
                    await self.step(address, one)
            await self.step(address, message)
        self.told.clear()
        if is_flushed:
            self.clock.advance(timedelta(seconds=6))
            for address in self.states:
                await self.step(address, ranker.CheckClock())

    async def step(self, address: Address, message: Any) -> None:
        result = ranker.step(self.states[address], message, self.clock.now(), Random(1))  # noqa: S311 - unused
        self.states[address] = result.state
        recorded = [effect.row for effect in result.effects if isinstance(effect, RecordRow)]
        async with self.pool.acquire() as connection, connection.transaction():
            await MarketWriter().write(connection, recorded)


async def add_impressions(pool: Pool, seen: int) -> None:
    await pool.execute(
        """INSERT INTO contextual_results (site_id, banner_id, category, minute, impressions, clicks, revenue_micros)
           SELECT id, 1, '483', $1, $2, 0, 0 FROM sites""",
        NOW,
        seen,
    )


async def test_a_ranker_that_wakes_between_two_looks_counts_nothing_twice(
    site_pool: Pool, valkey: Valkey
) -> None:
    clock = ManualClock(NOW)
    host: Any = RankerHost(site_pool, clock)
    follower = ResultsFollower(site_pool, valkey, host, clock)
    await add_impressions(site_pool, 1)
    await follower.poll()
    await host.run(is_flushed=True)
    await add_impressions(site_pool, 10)
    await host.wake_again()
    await add_impressions(site_pool, 100)

    await follower.poll()
    await host.run(is_flushed=True)

    stored = await site_pool.fetch("SELECT round(impressions::numeric, 1) FROM category_results")
    assert [float(row[0]) for row in stored] == [111, 111]


@pytest.mark.parametrize("seed", range(4))
async def test_rankers_know_every_result_once_whatever_is_killed(
    site_pool: Pool, valkey: Valkey, seed: int
) -> None:
    chance, clock = Random(seed), ManualClock(NOW)  # noqa: S311 - no secret is made of it
    host: Any = RankerHost(site_pool, clock)
    follower = ResultsFollower(site_pool, valkey, host, clock)
    total = 0
    for _ in range(12):
        seen = chance.randrange(1, 50)
        await add_impressions(site_pool, seen)
        total += seen
        if chance.random() < 0.3:
            await host.wake_again()
        if chance.random() < 0.7:
            host.is_full = chance.random() < 0.3
            with suppress(UnavailableError):
                await follower.poll()
            host.is_full = False
            await host.run(is_flushed=chance.random() < 0.5)
        if chance.random() < 0.4:  # Killed: states and messages are lost, another worker goes on.
            host = RankerHost(site_pool, clock)
            follower = ResultsFollower(site_pool, valkey, host, clock)
    await follower.poll()
    await host.run(is_flushed=True)

    stored = await site_pool.fetch("SELECT site, round(impressions::numeric, 2) FROM category_results")
    assert {row[0]: float(row[1]) for row in stored} == {
        str(SITE): pytest.approx(total, rel=0.001),
        "*": pytest.approx(total, rel=0.001),
    }


# To delivery.


async def test_delivery_reads_what_the_worker_publishes_and_a_restart_changes_nothing(
    site_pool: Pool, valkey: Valkey
) -> None:
    clock = ManualClock(NOW)
    site_key = await site_pool.fetchval("SELECT id FROM sites")
    await site_pool.executemany(
        """INSERT INTO contextual_results (site_id, banner_id, category, minute, impressions, clicks, revenue_micros)
           VALUES ($1, $2, '483', $3, $4, $5, 0)""",
        [
            (site_key, 5, NOW, 10, 1),
            (site_key, 5, NOW - timedelta(minutes=59), 5, 0),
            (site_key, 6, NOW - timedelta(minutes=61), 7, 7),
        ],
    )
    loader = ResultsLoader(valkey)
    assert loader.find(SITE) == NO_RESULTS

    await ResultsFollower(site_pool, valkey, RankerHost(site_pool, clock), clock).poll()  # type: ignore[arg-type]
    await loader.refresh()

    assert loader.find(SITE).banners == {5: (15, 1)}
    clock.advance(timedelta(minutes=30))
    again = ResultsFollower(site_pool, valkey, RankerHost(site_pool, clock), clock)  # type: ignore[arg-type]
    await again.poll()
    await loader.refresh()
    assert loader.find(SITE).banners == {5: (10, 1)}

    clock.advance(timedelta(minutes=31))
    await again.poll()
    await loader.refresh()
    assert loader.find(SITE) == NO_RESULTS


async def test_a_delivery_process_holds_the_sites_that_are_asked_for(valkey: Valkey) -> None:
    loader = ResultsLoader(valkey, sites_max=2)
    sites = [SiteId(UUID(int=number)) for number in range(3)]
    await publish_results(valkey, {site: SiteResults(1, {1: (2, 1)}, 0.1) for site in sites})

    for site in sites:
        loader.find(site)
    await loader.refresh()

    assert len(loader) == 2
    assert loader.find(sites[2]).banners == {1: (2, 1)}


async def test_moving_floors_hear_of_a_quarter_of_an_hour_twice_in_case_the_message_was_lost(
    site_pool: Pool, valkey: Valkey
) -> None:
    await site_pool.execute("UPDATE sites SET floor_mode = 'sweep'")
    clock, told = ManualClock(NOW), list[int]()

    class Heard:
        def tell(self, _: object, message: object) -> bool:
            if isinstance(message, FloorTick):
                told.append(message.number)
            return True

    following = ResultsFollower(site_pool, valkey, Heard(), clock)  # pyright: ignore[reportArgumentType] - it only tells
    for _ in range(30):
        await following.poll()
        clock.advance(timedelta(minutes=1))

    _, number, *_ = sorted(set(told))
    assert told.count(number) == 2


async def test_moving_floors_hear_of_quarters_again_when_a_clock_that_was_ahead_is_set_back(
    site_pool: Pool, valkey: Valkey
) -> None:
    await site_pool.execute("UPDATE sites SET floor_mode = 'sweep'")
    told = list[int]()

    class Heard:
        def tell(self, _: object, message: object) -> bool:
            if isinstance(message, FloorTick):
                told.append(message.number)
            return True

    class Clock:
        moment = NOW + timedelta(days=30)

        def now(self) -> datetime:
            return self.moment

    clock = Clock()
    following = ResultsFollower(site_pool, valkey, Heard(), clock)  # pyright: ignore[reportArgumentType] - it only tells
    await following.poll()
    clock.moment = NOW
    await following.poll()

    assert told == [told[1] + 30 * 96, told[1]]
