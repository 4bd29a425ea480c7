"""A line of one's own to Valkey: one call after another, and a new connection after one that went wrong."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from redis.exceptions import ConnectionError as CutOffError
from redis.exceptions import ResponseError

from adloom.runtime.valkey import DedicatedConnection, Valkey


@pytest.fixture
async def line(valkey: Valkey) -> AsyncGenerator[DedicatedConnection]:
    async with aclosing(DedicatedConnection(valkey)) as line:
        yield line


async def test_calls_are_answered_over_one_connection(line: DedicatedConnection) -> None:
    first = await line.execute_command("CLIENT", "ID")

    assert await line.execute_command("SET", "a", b"1") in {b"OK", "OK", True}
    assert await line.execute_command("GET", "a") == b"1"
    assert await line.execute_command("CLIENT", "ID") == first


async def test_a_call_that_is_refused_leaves_the_connection(line: DedicatedConnection) -> None:
    first = await line.execute_command("CLIENT", "ID")
    with pytest.raises(ResponseError):
        await line.execute_command("NO-SUCH-COMMAND")

    assert await line.execute_command("CLIENT", "ID") == first


async def test_the_answer_of_an_abandoned_call_reaches_no_other_call(
    line: DedicatedConnection, valkey: Valkey
) -> None:
    waiting = asyncio.ensure_future(line.execute_command("BLPOP", "list", 0))
    async with asyncio.timeout(30):
        while not await _is_blocked(valkey):  # noqa: ASYNC110 - what is waited for happens in the server
            await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.wait([waiting])
    await valkey.rpush("list", "meant for somebody else")  # pyright: ignore[reportGeneralTypeIssues]  the stubs know both kinds

    assert await line.execute_command("ECHO", "ours") == b"ours"


async def _is_blocked(valkey: Valkey) -> bool:
    return any("blpop" in client["cmd"] for client in await valkey.client_list())


async def test_after_a_connection_that_was_cut_the_next_call_makes_another(
    line: DedicatedConnection, valkey: Valkey
) -> None:
    number = await line.execute_command("CLIENT", "ID")
    await valkey.execute_command("CLIENT", "KILL", "ID", str(number))

    with pytest.raises(CutOffError):
        for _ in range(3):
            await line.execute_command("PING")

    assert await line.execute_command("ECHO", "again") == b"again"


async def test_it_may_be_closed_and_used_again(line: DedicatedConnection) -> None:
    await line.aclose()
    await line.aclose()

    assert await line.execute_command("ECHO", "there") == b"there"
