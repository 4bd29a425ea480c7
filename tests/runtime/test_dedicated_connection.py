"""A dedicated connection to Valkey: one call after another, and a new connection after a failure."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import pytest
from redis.exceptions import ConnectionError as CutOffError
from redis.exceptions import ResponseError

from adloom.runtime.failover.dedicated_connection import DedicatedConnection, borrow_connection, pack_command
from adloom.runtime.valkey import Valkey


@pytest.fixture
async def connection(valkey: Valkey) -> AsyncGenerator[DedicatedConnection]:
    async with aclosing(DedicatedConnection(valkey)) as connection:
        yield connection


async def test_calls_are_answered_over_one_connection(connection: DedicatedConnection) -> None:
    first = await connection.execute_command("CLIENT", "ID")

    assert await connection.execute_command("SET", "a", b"1") in {b"OK", "OK", True}
    assert await connection.execute_command("GET", "a") == b"1"
    assert await connection.execute_command("CLIENT", "ID") == first


async def test_a_refused_call_keeps_the_connection(connection: DedicatedConnection) -> None:
    first = await connection.execute_command("CLIENT", "ID")
    with pytest.raises(ResponseError):
        await connection.execute_command("NO-SUCH-COMMAND")

    assert await connection.execute_command("CLIENT", "ID") == first


async def test_the_answer_of_an_abandoned_call_reaches_no_other_call(
    connection: DedicatedConnection, valkey: Valkey
) -> None:
    waiting = asyncio.ensure_future(connection.execute_command("BLPOP", "list", 0))
    async with asyncio.timeout(60):
        while not await _is_blocked(valkey):  # noqa: ASYNC110 - what is waited for happens in the server
            await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.wait([waiting])
    await valkey.rpush("list", "for another call")  # pyright: ignore[reportGeneralTypeIssues]  the stubs know both kinds

    assert await connection.execute_command("ECHO", "ours") == b"ours"


async def _is_blocked(valkey: Valkey) -> bool:
    return any("blpop" in client["cmd"] for client in await valkey.client_list())


async def test_a_call_after_a_lost_connection_opens_a_new_one(
    connection: DedicatedConnection, valkey: Valkey
) -> None:
    number = await connection.execute_command("CLIENT", "ID")
    await valkey.execute_command("CLIENT", "KILL", "ID", str(number))

    with suppress(CutOffError):  # Unless it was heard in time.
        await connection.execute_command("PING")

    assert await connection.execute_command("ECHO", "again") == b"again"
    assert await connection.execute_command("CLIENT", "ID") != number


async def test_a_call_fails_if_its_connection_is_lost(
    connection: DedicatedConnection, valkey: Valkey
) -> None:
    number = await connection.execute_command("CLIENT", "ID")
    waiting = asyncio.ensure_future(connection.execute_command("BLPOP", "list", 0))
    async with asyncio.timeout(60):
        while not await _is_blocked(valkey):  # noqa: ASYNC110 - what is waited for happens in the server
            await asyncio.sleep(0.01)
    await valkey.execute_command("CLIENT", "KILL", "ID", str(number))

    with pytest.raises(CutOffError):
        await waiting


async def test_an_answer_may_come_in_pieces(connection: DedicatedConnection) -> None:
    large = b"0123456789" * 200_000

    assert await connection.execute_command("SET", "large", large) in {b"OK", "OK", True}
    assert await connection.execute_command("GET", "large") == large


async def test_a_closed_connection_can_be_used_again(connection: DedicatedConnection) -> None:
    await connection.aclose()
    await connection.aclose()

    assert await connection.execute_command("ECHO", "there") == b"there"


async def test_packed_commands_are_answered_together_and_the_first_refusal_is_raised(
    connection: DedicatedConnection, valkey: Valkey
) -> None:
    many = b"".join(pack_command("ECHO", b"%d" % number) for number in range(20_000))
    refused = b"".join(pack_command(*words) for words in (("MULTI",), ("NO-SUCH-COMMAND",), ("EXEC",)))

    assert list(await connection.execute_packed(many, 20_000)) == [b"%d" % number for number in range(20_000)]
    with pytest.raises(ResponseError, match="unknown command"):
        await connection.execute_packed(refused, 3)

    async with borrow_connection(valkey) as execute_packed:
        assert list(await execute_packed(many, 20_000)) == [b"%d" % number for number in range(20_000)]
    with pytest.raises(ResponseError, match="unknown command"):
        async with borrow_connection(valkey) as execute_packed:
            await execute_packed(refused, 3)
    assert await connection.execute_command("ECHO", "ours") == await valkey.echo("ours") == b"ours"
