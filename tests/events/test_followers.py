"""Topics and frequency counts with the real tables and worker: every event once, whatever is killed."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from typing import Any

import pytest

from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SystemIds
from adloom.events.frequency.counts import FrequencyCounters
from adloom.events.frequency.projection import FREQUENCY
from adloom.events.frequency.rebuild import FrequencyRebuild
from adloom.events.frequency.windows import Window
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.append import EventAppender
from adloom.events.log.event import Click, Impression, Mark
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.events.tables.store import EVENT_TABLES
from adloom.events.topics.publish import AD_SERVED, CLICK_TRACKED, IMPRESSION_TRACKED, TOPICS_PROJECTION
from adloom.ops.projections import ProjectionSpec, build_projections, list_projections, read_cursors
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.direct.encode import ServedEventPublisher
from adloom.serving.index.compile import compile_index
from tests.events.builders import BANNER, SECRET, a_click, an_impression
from tests.events.catalog import cap_banners, insert_catalog
from tests.events.followed import NEXT_HOUR, USER, Followed, a_served, begin_topics, ids_of
from tests.support.answers import at_once
from tests.support.forked import ForkedPopen
from tests.support.rows import a_snapshot, an_assignment_row

NOW = NEXT_HOUR


def seen(number: int, **fields: Any) -> Impression:
    attributes = {"user_id": USER, "occurred_at": NOW, "received_at": NOW, **fields}
    return an_impression(f"{number}", **attributes)


def clicked(number: int) -> Click:
    return a_click(f"{number}", occurred_at=NOW, received_at=NOW)


@pytest.fixture
async def followed(pool: Pool, valkey: Valkey) -> Followed:
    await insert_catalog(pool)
    await cap_banners(pool)
    await begin_topics(valkey)
    return Followed(pool, valkey)


async def shown(followed: Followed) -> int:
    counts = await FrequencyCounters(followed.valkey).read_user(USER, NOW)
    return counts[Window.DAY].get(BANNER, 0)


async def until_all_is_applied(followed: Followed) -> None:
    """Wait until every projection has read the last entry."""
    last = (await followed.records())[-1].entry_id
    listed = list_projections(followed.pool, followed.valkey)
    async with asyncio.timeout(60):
        while set((await read_cursors(listed, followed.pool)).values()) != {last}:  # noqa: ASYNC110 - other tasks work
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(
    followed: Followed, stores: Mapping[str, Any] | None = None, *, name: str = "one"
) -> AsyncGenerator[None]:
    """Run all projections as one worker does, some of them with the test's own stores."""
    listed = [
        ProjectionSpec(place.name, (stores or {}).get(place.name, place.store), place.follows, 50)
        for place in list_projections(followed.pool, followed.valkey)
    ]
    made = build_projections(listed, followed.valkey, consumer=name, incarnation=name)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for one in made:
            group.create_task(one.run(stop))
        yield
        stop.set()


async def test_counted_events_are_published_and_counted_once(followed: Followed) -> None:
    async with running(followed):
        for part in range(5):
            await followed.append(
                *(seen(number) for number in range(part * 60, part * 60 + 90)),
                *(clicked(number) for number in range(part, part + 10)),
                seen(1_000 + part, marks=(Mark.CRAWLER,)),
                a_served(slot=part),
            )
        await until_all_is_applied(followed)

    assert sorted(ids_of(await followed.topic(IMPRESSION_TRACKED)), key=int) == [
        *(f"{number}" for number in range(330)),
        *(f"{1_000 + part}" for part in range(5)),
    ]
    assert Counter(ids_of(await followed.topic(CLICK_TRACKED))) == Counter(f"{one}" for one in range(14))
    assert len(await followed.topic(AD_SERVED)) == 5
    assert await shown(followed) == 330


async def test_a_served_offer_is_published_to_its_topic(followed: Followed) -> None:
    index = compile_index(a_snapshot(an_assignment_row(), placement_type="story"))
    async with EventAppender(followed.ledger) as appender:
        routes = ServeRoutes(
            lambda: index,
            TokenKeys(SECRET).signer,
            ManualClock(NOW),
            SystemIds(),
            public_url="https://ads.example",
            publisher=ServedEventPublisher(appender.enqueue),
        )
        answer = json.loads(at_once(routes.serve(FastRequest(b"GET", b"/banners/serve/home"))).body)
    async with running(followed):
        await until_all_is_applied(followed)

    [payload] = await followed.topic(AD_SERVED)
    assert (payload["auctionId"], payload["slot"]) == (answer["requestId"], 0)
    assert payload["adId"] == answer["banners"][0]["id"]
    assert (payload["placementId"], payload["placementType"]) == (answer["placement"]["id"], "story")


async def test_no_follower_gets_ahead_of_the_event_tables(followed: Followed) -> None:
    class BlockedTables:
        """Tables that apply nothing."""

        async def read_cursor(self) -> str:
            return "0-0"

        async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
            raise UnavailableError(f"{len(records)} records from {after} to {cursor} must wait.")

    await followed.append(seen(1), a_served())
    async with running(followed, {EVENT_TABLES: BlockedTables()}):
        await asyncio.sleep(0.3)

    assert await followed.topic(IMPRESSION_TRACKED) == []
    assert await followed.topic(AD_SERVED) == []
    assert await shown(followed) == 0


class LosesAnswers:
    """A store whose answer to every third commit is lost, after it was done or before."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._calls = 0
        self.read_cursor = store.read_cursor

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        self._calls += 1
        if self._calls % 3 == 1:
            raise UnavailableError("The commit did not arrive.")
        result = await self._store.commit(records, after=after, cursor=cursor)
        if self._calls % 3 == 2:
            raise UnavailableError("The answer was lost.")
        return result


async def test_lost_answers_change_nothing(followed: Followed) -> None:
    stores = {
        place.name: LosesAnswers(place.store) for place in list_projections(followed.pool, followed.valkey)
    }
    await followed.append(*(seen(number % 200) for number in range(300)))

    async with running(followed, {name: stores[name] for name in (TOPICS_PROJECTION, FREQUENCY)}):
        await until_all_is_applied(followed)

    assert Counter(ids_of(await followed.topic(IMPRESSION_TRACKED))) == Counter(
        str(one) for one in range(200)
    )
    assert await shown(followed) == 200


async def test_two_workers_publish_and_count_once(followed: Followed) -> None:
    async with running(followed, name="one"), running(followed, name="two"):
        for part in range(10):
            await followed.append(*(seen(number) for number in range(part * 50, part * 50 + 100)))
            await asyncio.sleep(0.02)
        await until_all_is_applied(followed)

    assert Counter(ids_of(await followed.topic(IMPRESSION_TRACKED))) == Counter(
        str(one) for one in range(550)
    )
    assert await shown(followed) == 550


async def test_a_frequency_replay_beside_a_running_worker_loses_and_repeats_nothing(
    followed: Followed,
) -> None:
    async def report() -> None:
        for part in range(20):
            await followed.append(*(seen(number) for number in range(part * 25, part * 25 + 40)))
            await asyncio.sleep(0.02)

    async with running(followed), asyncio.TaskGroup() as group:
        reporting = group.create_task(report())
        replays = 0
        while not reporting.done() or replays < 2:
            rebuild = FrequencyRebuild(followed.pool, followed.valkey, LogScanner(followed.valkey))
            await rebuild.run(now=NOW)
            replays += 1
        await until_all_is_applied(followed)

    assert await shown(followed) == 20 * 25 + 15


@contextlib.contextmanager
def a_worker(database_url: str, redis_url: str) -> Generator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "WORKER_PORT": str(find_port()),
    }
    process = ForkedPopen(
        [sys.executable, "-m", "adloom.app.worker"], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.process
async def test_every_event_is_published_and_counted_once_although_workers_are_killed(
    followed: Followed, database_url: str, redis_url: str
) -> None:
    events = 12_000
    for start in range(0, events, 1_000):
        await followed.append(*(seen(number) for number in range(start, start + 1_000)))
    await followed.append(*(seen(number) for number in range(0, events, 7)))

    for fraction in (0.1, 0.4, 0.7):
        with a_worker(database_url, redis_url):
            async with asyncio.timeout(60):
                while await followed.valkey.xlen(IMPRESSION_TRACKED) < fraction * events:  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.005)
    with a_worker(database_url, redis_url):
        await until_all_is_applied(followed)

    assert Counter(ids_of(await followed.topic(IMPRESSION_TRACKED))) == Counter(
        str(one) for one in range(events)
    )
    assert await shown(followed) == events
