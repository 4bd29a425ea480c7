"""A rebuild of frequency counts replaces the old counts at once, or changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from adloom.core.errors import UnavailableError
from adloom.core.progress import ProgressListener
from adloom.events.frequency.counts import BUILDING, GENERATION, FrequencyCounters
from adloom.events.frequency.projection import FREQUENCY, FrequencyProjection
from adloom.events.frequency.rebuild import FrequencyRebuild
from adloom.events.frequency.windows import Window, list_buckets
from adloom.events.log.event import Impression, LogEntry, Mark
from adloom.events.ports import BatchResult, CursorMovedError
from adloom.events.projections.dead_letters import wrap_redelivery
from adloom.events.projections.group import ConsumerGroup
from adloom.events.projections.projection import Projection
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.events.rebuild.rebuild import RebuildRefusedError
from adloom.events.tables.store import EVENT_TABLES
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import BANNER, an_impression
from tests.events.catalog import cap_banners, insert_banner, insert_catalog
from tests.events.followed import NEXT_HOUR, OTHER_BANNER, OTHER_USER, USER, Followed

Meanwhile = Callable[[], Awaitable[object]]

NOW = NEXT_HOUR
LIFETIME_ENDS = list_buckets(NOW)[-1].expires_at


def seen(correlation_id: str, **fields: Any) -> Impression:
    attributes = {"user_id": USER, "occurred_at": NOW, "received_at": NOW, **fields}
    return an_impression(correlation_id, **attributes)


class RecordedProgress(ProgressListener):
    """Records the progress of a replay."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}

    def begin(self, title: str, total: float | None = None, *, unit: str = "") -> None:
        assert total is None
        assert not unit
        self.steps[title] = 0

    def advance(self, count: float = 1) -> None:
        self.steps[list(self.steps)[-1]] += count


async def nothing() -> None:
    pass


def times(count: int, happens: Callable[[int], Awaitable[object]]) -> Meanwhile:
    """Call a function for the numbers below `count`, one per call, and do nothing after that."""
    numbers = iter(range(count))

    async def next_one() -> None:
        for number in numbers:
            await happens(number)
            return

    return next_one


class InterruptedScanner(LogScanner):
    """A log scanner that calls functions before and after each read."""

    def __init__(self, valkey: Valkey, meanwhile: Meanwhile, afterwards: Meanwhile) -> None:
        super().__init__(valkey)
        self._meanwhile = meanwhile
        self._afterwards = afterwards

    async def read(self, start: str, last: str, *, count_max: int) -> Sequence[LogEntry]:
        await self._meanwhile()
        entries = await super().read(start, last, count_max=count_max)
        await self._afterwards()
        return entries


class FrequencySystem:
    """The log and tables, the live projection, and a replay of it."""

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.record = followed.record
        self.live = FrequencyProjection(followed.valkey, followed.lookup, followed.find_capped)
        self.counts = FrequencyCounters(followed.valkey)
        self.progress = RecordedProgress()

    async def apply(self) -> BatchResult:
        return await self.followed.apply(self.live)

    async def replay(self, meanwhile: Meanwhile = nothing, *, afterwards: Meanwhile = nothing) -> int:
        """Rebuild the counts; `meanwhile` runs before each read of the log, `afterwards` after it."""
        rebuild = FrequencyRebuild(
            self.followed.pool,
            self.followed.valkey,
            InterruptedScanner(self.followed.valkey, meanwhile, afterwards),
            progress=self.progress,
        )
        return await rebuild.run(now=NOW)

    async def everything(self) -> list[Any]:
        return [await self.counts.read_user(user, NOW) for user in (USER, OTHER_USER)]

    async def shown(self, window: Window = Window.DAY) -> int:
        return (await self.counts.read_user(USER, NOW))[window].get(BANNER, 0)

    async def lifetime_ends(self) -> set[int]:
        keys = cast("list[bytes]", await self.followed.valkey.keys("adloom:frequency:*:lifetime:*"))
        return {await self.followed.valkey.expiretime(key.decode()) for key in keys}

    async def generations(self) -> set[str]:
        keys = cast("list[bytes]", await self.followed.valkey.keys("adloom:frequency:[0-9]*:*"))
        return {key.decode().split(":")[2] for key in keys}


@pytest.fixture
async def system(pool: Pool, valkey: Valkey) -> FrequencySystem:
    await insert_catalog(pool)
    await insert_banner(pool, OTHER_BANNER)
    await cap_banners(pool)
    return FrequencySystem(Followed(pool, valkey))


async def test_rebuilt_counts_equal_live_counts(system: FrequencySystem) -> None:
    ages = [timedelta(), timedelta(minutes=70), timedelta(hours=23)]
    events = [
        seen(
            f"{number}",
            user_id=(USER, OTHER_USER, None)[number % 3],
            banner_id=(BANNER, OTHER_BANNER)[number % 2],
            occurred_at=NOW - ages[number % 5 % 3],
            marks=(Mark.CRAWLER,) if number % 11 == 0 else (),
        )
        for number in range(200)
    ]
    await system.record(*events, *events[:50])
    await system.apply()
    live = await system.everything()

    shown = await system.replay()

    assert await system.everything() == live
    assert live != [{window: {} for window in Window}] * 2
    assert shown == sum(event.user_id is not None and not event.marks for event in events)
    assert system.progress.steps["Counting the rows of users"] == shown


@pytest.mark.parametrize("ages", [(0, 40), (40, 0)])
async def test_a_lifetime_ends_after_the_last_month_of_a_user_whatever_is_counted_last(
    system: FrequencySystem, ages: tuple[int, ...]
) -> None:
    await system.record(*(seen(f"{age}", occurred_at=NOW - timedelta(days=age)) for age in ages))
    await system.apply()
    assert await system.lifetime_ends() == {LIFETIME_ENDS}

    await system.replay()

    assert await system.lifetime_ends() == {LIFETIME_ENDS}


async def test_a_replay_counts_what_is_older_than_a_lifetime_for_users_who_were_seen_since(
    system: FrequencySystem,
) -> None:
    users = [UUID(int=number) for number in range(1, 21)]
    await system.record(
        *(
            seen(f"{user}-{age}", user_id=user, occurred_at=NOW - timedelta(days=age))
            for user in users
            for age in (0, 500)
        )
    )

    await system.replay()

    counts = [await system.counts.read_user(user, NOW) for user in users]
    assert [one[Window.LIFETIME] for one in counts] == [{BANNER: 2}] * len(users)
    assert await system.lifetime_ends() == {LIFETIME_ENDS}


async def test_a_replay_corrects_wrong_counts_and_removes_the_old_generation(system: FrequencySystem) -> None:
    await system.record(seen("a"), seen("b"))
    await system.apply()
    [key] = cast("list[bytes]", await system.followed.valkey.keys(f"adloom:frequency:*:{USER}:day:*"))
    await system.followed.valkey.hincrby(key.decode(), str(BANNER), 40)
    assert await system.shown() == 42

    await system.replay()

    assert await system.shown() == 2
    assert await system.generations() == {"1"}
    assert not await system.followed.valkey.exists(BUILDING)


async def test_the_projection_continues_in_the_new_generation_after_its_last_entry(
    system: FrequencySystem,
) -> None:
    await system.record(seen("a"))
    await system.apply()
    after = await system.live.read_cursor()
    await system.record(seen("b"))
    records = await system.followed.records(after)

    await system.replay()

    assert await system.shown() == 2
    with pytest.raises(CursorMovedError):
        await system.live.commit(records, after=after, cursor=records[-1].entry_id)
    await system.record(seen("c"))
    await system.apply()
    assert await system.shown() == 3


async def test_events_during_a_replay_are_counted_once(system: FrequencySystem) -> None:
    await system.record(seen("a"), seen("b"))
    await system.apply()

    async def more(number: int) -> None:
        await system.record(seen(f"new-{number}"), seen("a"))
        await system.apply()

    await system.replay(times(5, more))

    assert await system.shown() == 7
    assert system.progress.steps["Following the ledger"] == 10


async def test_events_counted_live_after_the_log_was_read_are_in_the_new_generation(
    system: FrequencySystem,
) -> None:
    """A worker that has counted the last entry waits for the next: it would not count what is missing."""
    await system.record(seen("a"))
    await system.apply()

    async def more(number: int) -> None:
        await system.record(seen(f"new-{number}"))
        await system.apply()

    await system.replay(afterwards=times(3, more))

    assert await system.followed.valkey.get(GENERATION) == b"1"
    assert await system.shown() == 4
    assert await system.live.read_cursor() == (await system.followed.records())[-1].entry_id


async def test_only_events_that_the_tables_have_applied_are_counted(system: FrequencySystem) -> None:
    await system.record(seen("a"))
    await system.followed.append(seen("b"))

    await system.replay()

    assert await system.shown() == 1
    await system.followed.apply(system.followed.tables)
    await system.apply()
    assert await system.shown() == 2


async def test_an_interrupted_replay_changes_nothing_and_the_next_one_cleans_up(
    system: FrequencySystem,
) -> None:
    async def go_away() -> None:
        raise UnavailableError("The log does not answer.")

    await system.record(seen("a"))
    await system.apply()
    with pytest.raises(UnavailableError):
        await system.replay(go_away)
    assert await system.shown() == 1
    assert await system.generations() == {"0", "1"}
    await system.record(seen("b"))
    await system.apply()

    await system.replay()

    assert await system.shown() == 2
    assert await system.generations() == {"2"}


async def test_the_later_of_two_replays_wins(system: FrequencySystem) -> None:
    await system.record(seen("a"))
    await system.apply()

    with pytest.raises(RebuildRefusedError):
        await system.replay(times(1, lambda _: system.replay()))

    assert await system.shown() == 1
    assert await system.followed.valkey.get(GENERATION) == b"2"


async def test_a_user_erased_during_a_replay_is_not_in_the_new_generation(system: FrequencySystem) -> None:
    await system.record(seen("a"), seen("b", user_id=OTHER_USER))
    await system.apply()

    await system.replay(times(1, lambda _: system.followed.erase(USER)))

    assert await system.followed.valkey.keys(f"adloom:frequency:*:{USER}:*") == []
    assert (await system.counts.read_user(OTHER_USER, NOW))[Window.DAY] == {BANNER: 1}


async def test_an_erasure_reaches_the_generation_that_is_being_built(system: FrequencySystem) -> None:
    await system.record(seen("a"))
    await system.apply()

    await system.replay(times(1, lambda _: system.counts.erase_user(USER, NOW)))

    assert await system.shown() == 0


async def test_an_entry_redelivered_after_a_replay_is_not_counted_again(
    system: FrequencySystem,
) -> None:
    await system.record(seen("a"), seen("b"))
    entries = await system.followed.ledger.read("0-0", count_max=10, wait_seconds=0)
    await system.replay()
    await system.followed.ledger.append([wrap_redelivery(entries[0], FREQUENCY)])
    await system.followed.append(seen("c"))
    group = ConsumerGroup(system.followed.valkey, FREQUENCY, consumer="c", incarnation="1")
    tables = ConsumerGroup(system.followed.valkey, EVENT_TABLES, consumer="c", incarnation="1")
    followed = Projection(EVENT_TABLES, tables, system.followed.tables)

    stop = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as running:
        running.create_task(followed.run(stop))
        running.create_task(Projection(FREQUENCY, group, system.live, follows=followed).run(stop))
        while await system.shown() < 3:  # noqa: ASYNC110 - what is waited for happens in Valkey
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        stop.set()

    assert await system.shown() == 3
