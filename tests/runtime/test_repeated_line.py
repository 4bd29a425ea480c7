"""A line that comes often is written once a second, or once a minute in an outage, with how often it came."""

import asyncio
from itertools import pairwise

import structlog
import structlog.testing
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import UnavailableError
from adloom.runtime.locks import LeaderLoop
from adloom.runtime.loops import REPEATED_SECONDS, RepeatedLine
from tests.support.actors import Add, HostSystem, a_tally, on_virtual_time


@given(st.lists(st.floats(min_value=0.0, max_value=5.0), max_size=60))
def test_there_is_a_line_a_second_and_the_counts_leave_none_out_but_the_last(pauses: list[float]) -> None:
    now, moments = 0.0, list[float]()
    with structlog.testing.capture_logs() as lines:
        line = RepeatedLine(structlog.get_logger(), "append_failed", now=lambda: now)
        for pause in pauses:
            now += pause
            before = len(lines)
            line(error="full")
            if len(lines) > before:
                moments.append(now)

    assert all(later - sooner >= REPEATED_SECONDS - 1e-9 for sooner, later in pairwise(moments))
    counted = sum(written["times"] for written in lines)
    assert counted <= len(pauses)
    assert not pauses or lines[0]["times"] == 1
    # What is left out is what came within a second of the last line.
    assert len(pauses) - counted == 0 or now < moments[-1] + REPEATED_SECONDS


@on_virtual_time
async def test_a_host_that_cannot_begin_is_a_line_a_minute() -> None:
    system = HostSystem()
    system.states.is_away = True
    with structlog.testing.capture_logs() as lines:
        async with system.running():
            await asyncio.sleep(300)
            system.states.is_away = False
            await system.ask(Add())

    assert 5 <= len([line for line in lines if line["event"] == "entity_host_waits"]) <= 6


@on_virtual_time
async def test_actors_whose_states_cannot_be_read_are_a_line_a_minute() -> None:
    system = HostSystem()
    async with system.running() as host:
        await system.ask(Add())
        system.states.is_away = True
        with structlog.testing.capture_logs() as lines:
            for _ in range(600):
                host.tell(a_tally("b"), Add())
                await asyncio.sleep(0.5)
        system.states.is_away = False

    forgotten = [line for line in lines if line["event"] == "entities_forgotten"]
    assert 5 <= len(forgotten) <= 6
    assert sum(line["times"] for line in forgotten) > len(forgotten)


class LockOfAwayServer:
    """A lock whose server does not answer."""

    was_just_taken = False

    async def acquire(self) -> bool:
        raise UnavailableError("Valkey does not answer.")

    async def release(self) -> None:
        raise AssertionError("it was never taken")


@on_virtual_time
async def test_a_worker_that_cannot_lead_is_a_line_a_minute() -> None:
    stop = asyncio.Event()
    with structlog.testing.capture_logs() as lines:
        async with asyncio.TaskGroup() as group:
            group.create_task(LeaderLoop(LockOfAwayServer(), [], name="budgets").run(stop))
            await asyncio.sleep(300)
            stop.set()

    assert 5 <= len(lines) <= 6
    assert {line["event"] for line in lines} == {"brains_wait"}
    assert sum(line["times"] for line in lines) > 200
