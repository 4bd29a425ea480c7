"""Counting anew: the same counts, beside the old ones, put in their place at once, or not at all."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.frequency.counts import BUILDING, GENERATION, FrequencyCounters
from adloom.events.frequency.projection import FREQUENCY, FrequencyProjection
from adloom.events.frequency.rebuild import FrequencyRebuild
from adloom.events.frequency.windows import Window
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
from tests.events.catalog import insert_banner, insert_catalog
from tests.events.followed import NEXT_HOUR, OTHER_BANNER, OTHER_USER, USER, Followed

Meanwhile = Callable[[], Awaitable[object]]

NOW = NEXT_HOUR


def seen(correlation_id: str, **fields: Any) -> Impression:
    said = {"user_id": USER, "occurred_at": NOW, "received_at": NOW, **fields}
    return an_impression(correlation_id, **said)


class Told:
    """Notes what it is told of a replay."""

    def __init__(self) -> None:
        self.steps: dict[str, int] = {}

    def begin(self, step: str, total: int | None = None) -> None:
        assert total is None
        self.steps[step] = 0

    def advance(self, count: int) -> None:
        self.steps[list(self.steps)[-1]] += count


async def nothing() -> None:
    pass


def times(count: int, happens: Callable[[int], Awaitable[object]]) -> Meanwhile:
    """Have something happen so often, by its number, and nothing after that."""
    numbers = iter(range(count))

    async def next_one() -> None:
        for number in numbers:
            await happens(number)
            return

    return next_one


class Interrupted(LogScanner):
    """A ledger that something happens to before it is read, and behind the back of who has read it."""

    def __init__(self, valkey: Valkey, meanwhile: Meanwhile, afterwards: Meanwhile) -> None:
        super().__init__(valkey)
        self._meanwhile = meanwhile
        self._afterwards = afterwards

    async def read(self, start: str, last: str, *, count_max: int) -> Sequence[LogEntry]:
        await self._meanwhile()
        entries = await super().read(start, last, count_max=count_max)
        await self._afterwards()
        return entries


class World:
    """What is followed, the projection that is read, and a replay of it."""

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.happened = followed.happened
        self.live = FrequencyProjection(followed.valkey, followed.lookup)
        self.counts = FrequencyCounters(followed.valkey)
        self.progress = Told()

    async def apply(self) -> BatchResult:
        return await self.followed.apply(self.live)

    async def replay(self, meanwhile: Meanwhile = nothing, *, afterwards: Meanwhile = nothing) -> int:
        """Count anew; `meanwhile` happens before the ledger is read, each time, and `afterwards` after it."""
        rebuild = FrequencyRebuild(
            self.followed.pool,
            self.followed.valkey,
            Interrupted(self.followed.valkey, meanwhile, afterwards),
            progress=self.progress,
        )
        return await rebuild.run(now=NOW)

    async def everything(self) -> list[Any]:
        return [await self.counts.read_user(user, NOW) for user in (USER, OTHER_USER)]

    async def shown(self, window: Window = Window.DAY) -> int:
        return (await self.counts.read_user(USER, NOW))[window].get(BANNER, 0)

    async def generations(self) -> set[str]:
        keys = cast("list[bytes]", await self.followed.valkey.keys("adloom:frequency:[0-9]*:*"))
        return {key.decode().split(":")[2] for key in keys}


@pytest.fixture
async def world(pool: Pool, valkey: Valkey) -> World:
    await insert_catalog(pool)
    await insert_banner(pool, OTHER_BANNER)
    return World(Followed(pool, valkey))


async def test_rebuilt_counts_equal_live_counts(world: World) -> None:
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
    await world.happened(*events, *events[:50])
    await world.apply()
    live = await world.everything()

    shown = await world.replay()

    assert await world.everything() == live
    assert live != [{window: {} for window in Window}] * 2
    assert shown == sum(event.user_id is not None and not event.marks for event in events)
    assert world.progress.steps["Counting the rows of users"] == shown


async def test_a_replay_mends_what_was_counted_wrongly_and_leaves_nothing_else_behind(world: World) -> None:
    await world.happened(seen("a"), seen("b"))
    await world.apply()
    [key] = cast("list[bytes]", await world.followed.valkey.keys(f"adloom:frequency:*:{USER}:day:*"))
    await world.followed.valkey.hincrby(key.decode(), str(BANNER), 40)
    assert await world.shown() == 42

    await world.replay()

    assert await world.shown() == 2
    assert await world.generations() == {"1"}
    assert not await world.followed.valkey.exists(BUILDING)


async def test_the_projection_goes_on_in_the_new_generation_from_where_it_was_built_to(world: World) -> None:
    await world.happened(seen("a"))
    await world.apply()
    after = await world.live.read_cursor()
    await world.happened(seen("b"))
    records = await world.followed.records(after)

    await world.replay()

    assert await world.shown() == 2
    with pytest.raises(CursorMovedError):
        await world.live.commit(records, after=after, cursor=records[-1].entry_id)
    await world.happened(seen("c"))
    await world.apply()
    assert await world.shown() == 3


async def test_what_happens_while_it_is_summed_up_is_counted_once(world: World) -> None:
    await world.happened(seen("a"), seen("b"))
    await world.apply()

    async def more(number: int) -> None:
        await world.happened(seen(f"new-{number}"), seen("a"))
        await world.apply()

    await world.replay(times(5, more))

    assert await world.shown() == 7
    assert world.progress.steps["Following the ledger"] == 10


async def test_what_was_counted_live_after_the_log_was_read_is_in_the_new_generation(world: World) -> None:
    """A worker that has counted the last entry waits for the next: nobody would count what is missing."""
    await world.happened(seen("a"))
    await world.apply()

    async def more(number: int) -> None:
        await world.happened(seen(f"new-{number}"))
        await world.apply()

    await world.replay(afterwards=times(3, more))

    assert await world.followed.valkey.get(GENERATION) == b"1"
    assert await world.shown() == 4
    assert await world.live.read_cursor() == (await world.followed.records())[-1].entry_id


async def test_only_what_the_tables_have_applied_is_counted(world: World) -> None:
    await world.happened(seen("a"))
    await world.followed.append(seen("b"))

    await world.replay()

    assert await world.shown() == 1
    await world.followed.apply(world.followed.tables)
    await world.apply()
    assert await world.shown() == 2


async def test_a_replay_that_is_cut_off_changes_nothing_and_the_next_one_sweeps_up(world: World) -> None:
    async def go_away() -> None:
        raise UnavailableError("The ledger does not answer.")

    await world.happened(seen("a"))
    await world.apply()
    with pytest.raises(UnavailableError):
        await world.replay(go_away)
    assert await world.shown() == 1
    assert await world.generations() == {"0", "1"}
    await world.happened(seen("b"))
    await world.apply()

    await world.replay()

    assert await world.shown() == 2
    assert await world.generations() == {"2"}


async def test_of_two_replays_the_later_one_is_the_one_that_counts(world: World) -> None:
    await world.happened(seen("a"))
    await world.apply()

    with pytest.raises(RebuildRefusedError):
        await world.replay(times(1, lambda _: world.replay()))

    assert await world.shown() == 1
    assert await world.followed.valkey.get(GENERATION) == b"2"


async def test_a_user_who_is_erased_meanwhile_is_not_in_the_new_generation(world: World) -> None:
    await world.happened(seen("a"), seen("b", user_id=OTHER_USER))
    await world.apply()

    await world.replay(times(1, lambda _: world.followed.erase(USER)))

    assert await world.followed.valkey.keys(f"adloom:frequency:*:{USER}:*") == []
    assert (await world.counts.read_user(OTHER_USER, NOW))[Window.DAY] == {BANNER: 1}


async def test_an_erasure_reaches_the_generation_that_is_being_built(world: World) -> None:
    await world.happened(seen("a"))
    await world.apply()

    await world.replay(times(1, lambda _: world.counts.erase_user(USER, NOW)))

    assert await world.shown() == 0


async def test_an_entry_that_is_redelivered_after_a_replay_has_counted_it_does_not_count_again(
    world: World,
) -> None:
    await world.happened(seen("a"), seen("b"))
    entries = await world.followed.ledger.read("0-0", count_max=10, wait_seconds=0)
    await world.replay()
    await world.followed.ledger.append([wrap_redelivery(entries[0], FREQUENCY)])
    await world.followed.append(seen("c"))
    group = ConsumerGroup(world.followed.valkey, FREQUENCY, consumer="c", incarnation="1")
    tables = ConsumerGroup(world.followed.valkey, EVENT_TABLES, consumer="c", incarnation="1")
    followed = Projection(EVENT_TABLES, tables, world.followed.tables)

    stop = asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as running:
        running.create_task(followed.run(stop))
        running.create_task(Projection(FREQUENCY, group, world.live, follows=followed).run(stop))
        while await world.shown() < 3:  # noqa: ASYNC110 - what is waited for happens in Valkey
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        stop.set()

    assert await world.shown() == 3
