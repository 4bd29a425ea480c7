"""The mail room: who is alive, who has leases where, and mail that nobody should have sent."""

import asyncio
from typing import Any

import msgspec
import pytest

from adloom.budgets.messages import BudgetVerdict, OpenWindow, SessionOver
from adloom.budgets.transport.wire import (
    INBOX_CHANNEL,
    SessionEnds,
    SessionHeartbeat,
    SessionVoid,
    encode_envelopes,
    session_address,
)
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.budgets.builders import a_campaign, a_confirm, a_usage
from tests.budgets.worker_stage import ADVERTISER, CAMPAIGN, UNIT, Process, Stage, address_of, insert_campaign
from tests.support.eventually import eventually


@pytest.fixture
async def stage(pool: Pool, valkey: Valkey) -> Stage:
    await insert_campaign(pool)
    return Stage(pool, valkey)


async def lease_rows(pool: Pool) -> list[tuple[int, str]]:
    return [tuple(row) for row in await pool.fetch("SELECT session, key FROM brain_leases ORDER BY 1, 2")]


async def no_lease_of(pool: Pool, session: int, *, seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while session in {one for one, _ in await lease_rows(pool)}:  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)


async def is_closed(stage: Stage) -> dict[int, bool]:
    """Tell of which sessions the campaign has closed the leases."""
    state = await stage.state()
    assert state is not None
    return {lease.session: lease.closed_second is not None for lease in state.leases.values()}


async def test_a_process_gets_a_lease_and_is_noted_with_it(stage: Stage) -> None:
    async with stage.running(), Process(stage.valkey).listening() as process:
        await process.beat()
        answer = await process.leased()

    assert (answer.granted, answer.verdict) == (UNIT, BudgetVerdict.GRANTED)
    assert await lease_rows(stage.pool) == [(1, address_of().key)]
    row = await stage.pool.fetchrow("SELECT session, process, ended_at FROM brain_sessions")
    assert row is not None
    assert tuple(row) == (1, "delivery-1", None)


async def test_a_lease_is_answered_within_a_fifth_of_a_second(stage: Stage) -> None:
    async with stage.running(), Process(stage.valkey).listening() as process:
        first = await process.leased()
        clock = asyncio.get_running_loop().time
        began_at = clock()
        await process.leased(lease=first.lease, given=((int(stage.clock.now().timestamp()), UNIT),))

        assert clock() - began_at < 0.2


async def test_a_process_that_ends_returns_everything_and_is_never_heard_again(stage: Stage) -> None:
    async with stage.running() as budget_actors, Process(stage.valkey).listening() as process:
        await process.leased()
        await process.send((session_address(1), SessionEnds(session=1)))
        await no_lease_of(stage.pool, 1)
        await process.use()
        await process.beat()
        await eventually(lambda: SessionVoid(session=1) in process.heard, seconds=2)

        assert await is_closed(stage) == {1: True}
        assert await stage.pool.fetchval("SELECT ended_at IS NOT NULL FROM brain_sessions")
        assert budget_actors.inbox.sessions == 0
        assert len(process.answers) == 1


async def test_a_process_that_falls_silent_loses_its_leases_and_the_others_keep_theirs(
    pool: Pool, valkey: Valkey
) -> None:
    await insert_campaign(pool)
    stage = Stage(pool, valkey, silence_max=0.6)
    async with stage.running() as budget_actors, Process(valkey, 2).listening() as living:
        await Process(valkey, 1).use()
        await living.leased()
        for _ in range(12):
            await asyncio.sleep(0.1)
            await living.beat()
        await no_lease_of(pool, 1)

        assert budget_actors.inbox.sessions == 1
        assert await lease_rows(pool) == [(2, address_of().key)]
        assert await is_closed(stage) == {1: True, 2: False}


async def test_after_a_restart_of_the_worker_everyone_has_time_to_be_heard_of(
    pool: Pool, valkey: Valkey
) -> None:
    await insert_campaign(pool)
    living, gone = Process(valkey, 1), Process(valkey, 2)
    async with Stage(pool, valkey).running(), living.listening(), gone.listening():
        await living.leased()
        await gone.leased()
    after = Stage(pool, valkey, life="2", silence_max=0.8)

    async with after.running() as budget_actors:
        await asyncio.sleep(0.4)
        assert budget_actors.inbox.sessions == 2
        for _ in range(10):
            await living.beat()
            await asyncio.sleep(0.1)
        await no_lease_of(pool, 2)

        assert await is_closed(after) == {1: False, 2: True}


async def test_leases_of_a_session_that_ended_when_the_worker_died_are_closed_by_the_next(
    pool: Pool, valkey: Valkey
) -> None:
    await insert_campaign(pool)
    process = Process(valkey)
    async with Stage(pool, valkey).running(), process.listening():
        await process.leased()
    await pool.execute("UPDATE brain_sessions SET ended_at = now()")
    after = Stage(pool, valkey, life="2")

    async with after.running(), process.listening():
        await no_lease_of(pool, 1)
        await process.beat()
        await eventually(lambda: SessionVoid(session=1) in process.heard, seconds=2)

        assert await is_closed(after) == {1: True}


async def test_a_break_of_the_connection_is_nobodys_silence(pool: Pool, valkey: Valkey) -> None:
    await insert_campaign(pool)
    stage = Stage(pool, valkey, silence_max=1.0)
    async with stage.running() as budget_actors:
        process = Process(valkey)
        await process.use()
        await eventually(lambda: budget_actors.inbox.sessions == 1, seconds=2)
        for _ in range(4):
            await asyncio.sleep(0.5)
            await valkey.client_kill_filter(_type="pubsub")

        assert budget_actors.inbox.sessions == 1


async def test_mail_that_nobody_can_read_or_may_send_stops_nothing(stage: Stage) -> None:
    strangers: list[tuple[Address, Any]] = [
        (address_of(), a_confirm()),
        (address_of(), a_campaign(daily_budget=None)),
        (address_of(), SessionOver(session=1, second=1)),
        (Address("campaign", "no key at all"), a_usage()),
        (Address("campaign", str(CAMPAIGN)), a_usage()),
        (Address("campaign", address_of().key.upper()), a_usage()),
        (Address("advertiser", str(ADVERTISER)), OpenWindow(reason="mine")),
        (Address("nobody", "1"), a_usage()),
        (address_of(), a_usage(session=-1)),
        (address_of(), a_usage(session=2**63)),
        (address_of(), a_usage(session=0)),
    ]
    async with stage.running() as budget_actors, Process(stage.valkey).listening() as process:
        for junk in (
            b"",
            b"\xc1",
            b"no mail",
            msgspec.msgpack.encode([[1, 2], {"a": 1}, None]),
            b"\x91" * 5_000,
        ):
            await stage.valkey.publish(INBOX_CHANNEL, junk)
        await stage.valkey.publish(INBOX_CHANNEL, encode_envelopes(strangers))
        odd = SessionHeartbeat(session=7, process="\0" * 500 + "x" * 500)
        await process.send((session_address(7), odd), (address_of(), a_usage(session=7)))
        answer = await process.leased()

        assert answer.verdict is BudgetVerdict.GRANTED
        assert budget_actors.inbox.envelopes["unknown"] >= len(strangers)
        assert await stage.pool.fetchval("SELECT count(*) FROM money_entries") == 0
        assert {session for session, _ in await lease_rows(stage.pool)} == {1, 7}


async def test_a_campaign_that_is_not_under_this_address_grants_nothing(stage: Stage) -> None:
    """Under a second address it would have its budget twice."""
    async with stage.running() as budget_actors, Process(stage.valkey).listening() as process:
        await process.use(address_of(CAMPAIGN, ADVERTISER))
        await process.leased()
        await eventually(lambda: budget_actors.host.counts.steps >= 2, seconds=2)

        assert len(process.answers) == 1
        assert await stage.pool.fetchval("SELECT count(*) FROM brain_states") == 1


async def test_without_a_database_mail_is_dropped_and_taken_again_when_it_is_back(stage: Stage) -> None:
    async with stage.running(), Process(stage.valkey).listening() as process:
        await stage.pool.execute("ALTER TABLE brain_leases RENAME TO brain_leases_away")
        await process.use()
        await asyncio.sleep(0.3)
        assert process.answers == []
        await stage.pool.execute("ALTER TABLE brain_leases_away RENAME TO brain_leases")
        await asyncio.sleep(0.6)

        assert (await process.leased()).verdict is BudgetVerdict.GRANTED


async def test_a_lease_that_cannot_be_closed_is_closed_later_and_holds_up_nobody(
    pool: Pool, valkey: Valkey
) -> None:
    await insert_campaign(pool)
    stage = Stage(pool, valkey)
    async with stage.running() as budget_actors, Process(valkey, 1).listening() as gone:
        await gone.leased()
        await pool.execute("INSERT INTO brain_leases VALUES (1, 'no key')")
        await gone.send((session_address(1), SessionEnds(session=1)))
        async with Process(valkey, 2).listening() as other, asyncio.timeout(5):
            while len(await lease_rows(pool)) > 1:  # noqa: ASYNC110 - the database tells nobody
                await asyncio.sleep(0.01)
            await other.leased()

        assert set(await lease_rows(pool)) == {(1, "no key"), (2, address_of().key)}
        assert budget_actors.inbox.sessions == 1
