"""The inbox: live sessions, their leases, and invalid messages."""

import asyncio
import time
from typing import Any

import msgspec
import pytest
from redis.exceptions import ConnectionError  # noqa: A004 - the driver's, which is not the system's

from adloom.budgets.messages import BudgetVerdict, OpenWindow, SessionOver
from adloom.budgets.transport.wire import (
    HEARTBEAT_SECONDS,
    INBOX_CHANNEL,
    SessionEnds,
    SessionHeartbeat,
    SessionVoid,
    encode_envelopes,
    make_session_address,
)
from adloom.events.log.spool.drain import DEFAULT_LIMITS
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.budgets.builders import a_campaign, a_confirm, a_usage
from tests.budgets.worker_stage import ADVERTISER, CAMPAIGN, UNIT, Process, Stage, address_of, insert_campaign
from tests.support.eventually import eventually, measure_fastest


@pytest.fixture
async def stage(pool: Pool, valkey: Valkey) -> Stage:
    await insert_campaign(pool)
    return Stage(pool, valkey)


async def lease_rows(pool: Pool) -> list[tuple[int, str]]:
    return [tuple(row) for row in await pool.fetch("SELECT session, key FROM brain_leases ORDER BY 1, 2")]


async def wait_for_no_lease_of(pool: Pool, session: int, *, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while session in {one for one, _ in await lease_rows(pool)}:  # noqa: ASYNC110 - the database sends no notice of it
            await asyncio.sleep(0.01)


async def closed_by_session(stage: Stage) -> dict[int, bool]:
    """Return for each session whether the campaign has closed its lease."""
    state = await stage.state()
    assert state is not None
    return {lease.session: lease.closed_second is not None for lease in state.leases.values()}


async def test_a_process_gets_a_lease_and_both_are_recorded(stage: Stage) -> None:
    async with stage.running(), Process(stage.valkey).listening() as process:
        await process.send_heartbeat()
        answer = await process.ask_for_lease()

    assert (answer.granted, answer.verdict) == (UNIT, BudgetVerdict.GRANTED)
    assert await lease_rows(stage.pool) == [(1, address_of().key)]
    row = await stage.pool.fetchrow("SELECT session, process, ended_at FROM brain_sessions")
    assert row is not None
    assert tuple(row) == (1, "delivery-1", None)


async def test_a_lease_is_answered_within_a_fifth_of_a_second(stage: Stage) -> None:
    async with stage.running(), Process(stage.valkey).listening() as process:
        first = await process.ask_for_lease()
        given = ((int(stage.clock.now().timestamp()), UNIT),)

        async def ask() -> None:
            await process.ask_for_lease(lease=first.lease, given=given)

        assert await measure_fastest(ask, seconds=0.2) < 0.2


async def test_the_hold_of_a_capped_offer_comes_back_when_all_until_its_end_is_counted(stage: Stage) -> None:
    await stage.pool.execute("UPDATE campaigns SET impression_cap = 1")
    async with stage.running(), Process(stage.valkey).listening() as process:

        async def ask_until_granted(impressions: int, lease: int = 0) -> int:
            async with asyncio.timeout(60):
                while True:
                    answer = await process.ask_for_lease(lease=lease, want_impressions=1)
                    if answer.impressions_granted == impressions:
                        return answer.lease
                    await asyncio.sleep(0.1)

        lease = await ask_until_granted(1)
        long_ago = int(stage.clock.now().timestamp()) - 400
        reported = await process.ask_for_lease(
            lease=lease, given=((long_ago, UNIT),), impressions=((long_ago, 1),), want_impressions=1
        )
        assert reported.impressions_granted == 1, "nobody knows yet whether it was seen"
        await process.send_heartbeat()
        await ask_until_granted(2, lease)


async def test_the_log_is_complete_until_the_first_process_that_is_alive_has_something_in_its_spool(
    stage: Stage,
) -> None:
    async with stage.running() as budget_actors, Process(stage.valkey).listening() as process:
        inbox = budget_actors.inbox
        found = [inbox.find_logged_until()]
        await process.ask_for_lease()
        found.append(inbox.find_logged_until())
        for session, logged_until in ((1, 70), (2, 50), (3, None)):
            beat = SessionHeartbeat(session=session, process="delivery", logged_until=logged_until)
            inbox.receive(encode_envelopes([(make_session_address(session), beat)]))
            found.append(inbox.find_logged_until())

    assert found == [float("inf"), 0, 70, 50, 50]


async def test_the_spool_of_a_process_that_is_gone_is_waited_for_until_another_one_has_adopted_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.running() as budget_actors:
        inbox, found = budget_actors.inbox, list[float]()
        for session, logged_until in ((1, 70), (2, 50)):
            beat = SessionHeartbeat(session=session, process="delivery", logged_until=logged_until)
            inbox.receive(encode_envelopes([(make_session_address(session), beat)]))
        inbox.receive(encode_envelopes([(make_session_address(2), SessionEnds(session=2))]))
        at = asyncio.get_running_loop().time()
        for seconds in (0, DEFAULT_LIMITS.poll_seconds + HEARTBEAT_SECONDS, 40):
            monkeypatch.setattr("adloom.budgets.transport.inbox._read_seconds", lambda now=at + seconds: now)
            found.append(inbox.find_logged_until())

    assert found == [50, 50, 70]


async def test_a_process_whose_clock_is_wrong_is_behind_by_what_it_says_of_our_clock(stage: Stage) -> None:
    found: list[float] = []
    async with stage.running() as budget_actors:
        for wrong in (-3_600, 3_600):
            logged_until = int(time.time()) + wrong - 20
            beat = SessionHeartbeat(
                session=1, process="delivery", logged_until=logged_until, unlogged_seconds=20.5
            )
            budget_actors.inbox.receive(encode_envelopes([(make_session_address(1), beat)]))
            found.append(time.time() - budget_actors.inbox.find_logged_until())

    assert found == pytest.approx([20.5, 20.5], abs=5)


async def test_a_process_that_ends_its_session_loses_its_leases_and_gets_no_more_answers(
    stage: Stage,
) -> None:
    async with stage.running() as budget_actors, Process(stage.valkey).listening() as process:
        await process.ask_for_lease()
        await process.send((make_session_address(1), SessionEnds(session=1)))
        await wait_for_no_lease_of(stage.pool, 1)
        await process.report_usage()
        await process.send_heartbeat()
        await eventually(lambda: SessionVoid(session=1) in process.received, seconds=30)

        assert await closed_by_session(stage) == {1: True}
        assert await stage.pool.fetchval("SELECT ended_at IS NOT NULL FROM brain_sessions")
        assert budget_actors.inbox.sessions == 0
        assert len(process.answers) == 1


async def test_a_process_that_falls_silent_loses_its_leases_and_the_others_keep_theirs(
    pool: Pool, valkey: Valkey
) -> None:
    await insert_campaign(pool)
    stage = Stage(pool, valkey, silence_max=0.6)
    async with stage.running() as budget_actors, Process(valkey, 2).listening() as alive:
        await Process(valkey, 1).report_usage()
        await alive.ask_for_lease()
        for _ in range(12):
            await asyncio.sleep(0.1)
            await alive.send_heartbeat()
        await wait_for_no_lease_of(pool, 1)

        assert budget_actors.inbox.sessions == 1
        assert await lease_rows(pool) == [(2, address_of().key)]
        assert await closed_by_session(stage) == {1: True, 2: False}


async def test_after_a_restart_of_the_worker_every_session_has_time_to_send_a_message(
    pool: Pool, valkey: Valkey
) -> None:
    await insert_campaign(pool)
    alive, gone = Process(valkey, 1), Process(valkey, 2)
    async with Stage(pool, valkey).running(), alive.listening(), gone.listening():
        await alive.ask_for_lease()
        await gone.ask_for_lease()
    after = Stage(pool, valkey, life="2", silence_max=0.8)

    async with after.running() as budget_actors:
        await asyncio.sleep(0.4)
        assert budget_actors.inbox.sessions == 2
        for _ in range(10):
            await alive.send_heartbeat()
            await asyncio.sleep(0.1)
        await wait_for_no_lease_of(pool, 2)

        assert await closed_by_session(after) == {1: False, 2: True}


async def test_leases_of_a_session_that_ended_when_the_worker_died_are_closed_by_the_next_worker(
    pool: Pool, valkey: Valkey
) -> None:
    await insert_campaign(pool)
    process = Process(valkey)
    async with Stage(pool, valkey).running(), process.listening():
        await process.ask_for_lease()
    await pool.execute("UPDATE brain_sessions SET ended_at = now()")
    after = Stage(pool, valkey, life="2")

    async with after.running(), process.listening():
        await wait_for_no_lease_of(pool, 1)
        await process.send_heartbeat()
        await eventually(lambda: SessionVoid(session=1) in process.received, seconds=30)

        assert await closed_by_session(after) == {1: True}


async def test_a_broken_connection_does_not_count_as_silence_of_a_process(
    pool: Pool, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise ConnectionError("It is away.")

    await insert_campaign(pool)
    stage = Stage(pool, valkey, silence_max=1.0)
    async with stage.running() as budget_actors:
        process = Process(valkey)
        await process.report_usage()
        await eventually(lambda: budget_actors.inbox.sessions == 1, seconds=30)
        for _ in range(4):
            await asyncio.sleep(0.5)
            await valkey.client_kill_filter(_type="pubsub")
        assert budget_actors.inbox.sessions == 1

        with monkeypatch.context() as away:
            away.setattr(valkey, "pubsub", refuse)
            await valkey.client_kill_filter(_type="pubsub")
            await asyncio.sleep(2.5)
        assert (budget_actors.inbox.sessions, budget_actors.inbox.sessions_ended) == (1, 0)


async def test_unreadable_and_forbidden_messages_stop_nothing(stage: Stage) -> None:
    forbidden: list[tuple[Address, Any]] = [
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
            b"no message",
            msgspec.msgpack.encode([[1, 2], {"a": 1}, None]),
            b"\x91" * 5_000,
        ):
            await stage.valkey.publish(INBOX_CHANNEL, junk)
        await stage.valkey.publish(INBOX_CHANNEL, encode_envelopes(forbidden))
        odd = SessionHeartbeat(session=7, process="\0" * 500 + "x" * 500)
        await process.send((make_session_address(7), odd), (address_of(), a_usage(session=7)))
        answer = await process.ask_for_lease()

        assert answer.verdict is BudgetVerdict.GRANTED
        assert budget_actors.inbox.envelopes["unknown"] >= len(forbidden)
        assert await stage.pool.fetchval("SELECT count(*) FROM money_entries") == 0
        assert {session for session, _ in await lease_rows(stage.pool)} == {1, 7}


async def test_a_campaign_under_a_wrong_address_grants_nothing(stage: Stage) -> None:
    """Under a second address it would have its budget twice."""
    async with stage.running() as budget_actors, Process(stage.valkey).listening() as process:
        await process.report_usage(address_of(CAMPAIGN, ADVERTISER))
        await process.ask_for_lease()
        await eventually(lambda: budget_actors.host.counts.steps >= 2, seconds=30)

        assert len(process.answers) == 1
        assert await stage.pool.fetchval("SELECT count(*) FROM brain_states") == 1


async def test_messages_are_dropped_without_a_database_and_processed_when_it_is_back(stage: Stage) -> None:
    async with stage.running(), Process(stage.valkey).listening() as process:
        await stage.pool.execute("ALTER TABLE brain_leases RENAME TO brain_leases_away")
        await process.report_usage()
        await asyncio.sleep(0.3)
        assert process.answers == []
        await stage.pool.execute("ALTER TABLE brain_leases_away RENAME TO brain_leases")
        await asyncio.sleep(0.6)

        assert (await process.ask_for_lease()).verdict is BudgetVerdict.GRANTED


async def test_a_lease_that_cannot_be_closed_does_not_stop_other_sessions(pool: Pool, valkey: Valkey) -> None:
    await insert_campaign(pool)
    stage = Stage(pool, valkey)
    async with stage.running() as budget_actors, Process(valkey, 1).listening() as gone:
        await gone.ask_for_lease()
        await pool.execute("INSERT INTO brain_leases VALUES (1, 'no key')")
        await gone.send((make_session_address(1), SessionEnds(session=1)))
        async with Process(valkey, 2).listening() as other, asyncio.timeout(60):
            while len(await lease_rows(pool)) > 1:  # noqa: ASYNC110 - the database sends no notice of it
                await asyncio.sleep(0.01)
            await other.ask_for_lease()

        assert set(await lease_rows(pool)) == {(1, "no key"), (2, address_of().key)}
        assert budget_actors.inbox.sessions == 1
