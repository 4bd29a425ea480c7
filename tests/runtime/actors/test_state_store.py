"""States in PostgreSQL: stored with their records or not at all, and only by the owner of the last version."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from adloom.core.clock import ManualClock, SystemClock
from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address, FencedOutError, StateRejectedError, StateWrite, StoredState
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Connection, Pool
from simulation.loop import make_random
from tests.support.accounts import ACCOUNT, Note, an_account
from tests.support.actors import START, Catalog, Listeners, Row

A, B = Address("campaign", "a"), Address("advertiser", "b")


class Rows:
    """Writes rows into a table in which each may be once."""

    def __init__(self) -> None:
        self.connection: Connection | None = None

    async def write(self, connection: Connection, records: Sequence[msgspec.Struct]) -> None:
        self.connection = connection
        rows = [(row.key, row.number) for row in records if isinstance(row, Row)]
        await connection.executemany("INSERT INTO test_rows (key, number) VALUES ($1, $2)", rows)


@pytest.fixture
async def rows(pool: Pool) -> Rows:
    await pool.execute("CREATE TABLE test_rows (key text, number integer, UNIQUE (key, number))")
    return Rows()


@pytest.fixture
def states(pool: Pool, rows: Rows) -> PostgresStateStore:
    return PostgresStateStore(pool, rows, ManualClock(START))


def a_write(
    address: Address = A, *, was: int = 0, state: bytes = b"\x00state", wakes: bool = False
) -> StateWrite:
    wake_at = START + timedelta(microseconds=1) if wakes else None
    return StateWrite(address=address, was_version=was, format=3, state=state, wake_at=wake_at)


async def test_a_stored_state_is_loaded_unchanged(states: PostgresStateStore) -> None:
    await states.commit([a_write(A, wakes=True), a_write(B, state=b"")], [])

    assert await states.load([A, B, Address("campaign", "b"), Address("campaign", "é\n")]) == {
        A: StoredState(1, 3, b"\x00state", START + timedelta(microseconds=1)),
        B: StoredState(1, 3, b"", None),
    }


async def test_a_state_is_stored_with_its_shard_and_time(states: PostgresStateStore, pool: Pool) -> None:
    await states.commit([a_write(A)], [])

    row = await pool.fetchrow("SELECT shard, changed_at FROM brain_states")
    assert row is not None
    assert tuple(row) == (7, START)


async def test_each_commit_increases_the_version_of_a_state(states: PostgresStateStore) -> None:
    for version in range(3):
        await states.commit([a_write(A, was=version, state=b"%d" % version)], [])

    assert await states.load([A]) == {A: StoredState(3, 3, b"2", None)}


async def test_stored_alarms_can_be_listed(states: PostgresStateStore) -> None:
    await states.commit([a_write(A, wakes=True), a_write(B)], [])

    asked = [(A, START + timedelta(microseconds=1))]
    assert (
        await states.list_timers()
        == await states.list_timers(until=START + timedelta(microseconds=1))
        == asked
    )
    assert await states.list_timers(until=START) == []


@pytest.mark.parametrize("was", [0, 1, 3])
async def test_a_writer_of_another_version_is_fenced_out_with_all_its_writes(
    states: PostgresStateStore, pool: Pool, was: int
) -> None:
    await states.commit([a_write(A)], [])
    await states.commit([a_write(A, was=1)], [])

    with pytest.raises(FencedOutError):
        await states.commit([a_write(B), a_write(A, was=was, state=b"mine")], [Row("a", 1)])

    assert await states.load([A, B]) == {A: StoredState(2, 3, b"\x00state", None)}
    assert await pool.fetchval("SELECT count(*) FROM test_rows") == 0


async def test_one_of_two_concurrent_writers_is_fenced_out(states: PostgresStateStore) -> None:
    addresses = [Address("campaign", str(number)) for number in range(200)]
    await states.commit([a_write(address) for address in addresses], [])

    async def write(order: Sequence[Address], state: bytes) -> bytes | None:
        try:
            await states.commit([a_write(address, was=1, state=state) for address in order], [])
        except FencedOutError:
            return None
        return state

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(write(order, state))
            for order, state in ((addresses, b"first"), (addresses[::-1], b"second"))
        ]

    (winner,) = [task.result() for task in tasks if task.result() is not None]
    assert {one.state for one in (await states.load(addresses)).values()} == {winner}


async def test_a_record_that_no_table_accepts_is_rejected_and_nothing_is_stored(
    states: PostgresStateStore,
) -> None:
    await states.commit([a_write(A)], [Row("a", 1)])

    with pytest.raises(StateRejectedError):
        await states.commit([a_write(A, was=1), a_write(B)], [Row("a", 2), Row("a", 1)])

    assert (await states.load([A, B])).keys() == {A}
    assert (await states.load([A]))[A].version == 1


async def test_a_key_that_is_too_long_is_refused(states: PostgresStateStore) -> None:
    with pytest.raises(StateRejectedError):
        await states.commit([a_write(Address("campaign", "k" * 201))], [])


async def test_an_interrupted_commit_may_still_complete_and_fences_out_a_retry(
    states: PostgresStateStore, rows: Rows, pool: Pool
) -> None:
    await pool.execute("""
        CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON test_rows DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION linger();
    """)
    under_way = asyncio.create_task(states.commit([a_write(A)], [Row("a", 1)]))
    await asyncio.sleep(0.25)
    assert rows.connection is not None
    rows.connection.terminate()

    with pytest.raises(UnavailableError):
        await under_way

    assert await states.load([A]) == {}  # Not yet; an owner that relies on this answer is fenced out.
    with pytest.raises(FencedOutError):
        await states.commit([a_write(A, state=b"again")], [])
    assert await states.load([A]) == {A: StoredState(1, 3, b"\x00state", None)}


async def test_a_state_store_without_postgres_raises_unavailable(
    states: PostgresStateStore, pool: Pool
) -> None:
    pool.terminate()

    with pytest.raises(UnavailableError):
        await states.load([A])
    with pytest.raises(UnavailableError):
        await states.list_timers()
    with pytest.raises(UnavailableError):
        await states.commit([a_write(A)], [])


async def test_thousands_of_states_are_stored_in_one_transaction(states: PostgresStateStore) -> None:
    addresses = [Address("campaign", f"{number:036}") for number in range(2_000)]
    clock = asyncio.get_running_loop().time

    for version in range(3):
        started_at = clock()
        await states.commit(
            [a_write(address, was=version, state=b"s" * 500, wakes=True) for address in addresses], []
        )
        assert clock() - started_at < 30

    assert len(await states.load(addresses)) == len(await states.list_timers()) == 2_000


async def test_two_hosts_on_one_store_lose_nothing_that_they_reported_durable(
    states: PostgresStateStore,
) -> None:
    stop = asyncio.Event()
    hosts = [
        ActorHost(
            [ACCOUNT],
            states,
            introduction=Catalog(),
            audience=Listeners(),
            clock=SystemClock(),
            chance=make_random(1, "entities"),
        )
        for _ in range(2)
    ]

    async def note(host: ActorHost, name: str) -> None:
        for _ in range(100):
            try:
                await host.send_durably(an_account("a"), Note(name))
            except UnavailableError:
                await asyncio.sleep(0.05)
            else:
                return
        pytest.fail("the note was never stored")

    async with asyncio.TaskGroup() as group:
        for host in hosts:
            group.create_task(host.run(stop))
        await asyncio.sleep(0.05)
        async with asyncio.TaskGroup() as clients:
            for number in range(20):
                clients.create_task(note(hosts[number % 2], f"n{number}"))
        stop.set()

    stored = (await states.load([an_account("a")]))[an_account("a")]
    noted = ACCOUNT.decode(stored.state, format_number=stored.format).noted
    assert noted == {f"n{number}" for number in range(20)}
    assert sum(host.counts.fenced for host in hosts) > 0
