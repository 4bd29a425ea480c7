"""What Valkey refuses to our user is named."""

import ast
import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
import structlog.testing

from adloom.events.log.permissions import PermissionCheck, find_refused
from adloom.ops.checks.event_log import check_server
from adloom.ops.checks.finding import FindingState
from adloom.runtime.valkey import Valkey, open_valkey

CODE = Path(__file__).parents[2] / "src/adloom"
# Without them what makes a key cannot be tried.
STARTS = {"MULTI", "DISCARD"}
GUIDE = Path(__file__).parents[2] / "docs/guide/connections.md"
AsUser = Callable[..., AbstractAsyncContextManager[Valkey]]


@pytest.fixture
def as_user(valkey: Valkey, redis_url: str) -> AsUser:
    """Connect as a user with these rules."""

    @asynccontextmanager
    async def connect(*rules: str) -> AsyncGenerator[Valkey]:
        await valkey.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">secret", *rules)
        parts = urlsplit(redis_url)
        place = parts.netloc.rpartition("@")[2]
        async with open_valkey(parts._replace(netloc=f"limited:secret@{place}").geturl()) as client:
            yield client
        await valkey.execute_command("ACL", "DELUSER", "limited")

    return connect


async def test_nothing_is_refused_to_the_user_of_the_guide(as_user: AsUser) -> None:
    [line] = [line for line in GUIDE.read_text().splitlines() if line.startswith("ACL SETUSER adloom on >")]

    async with as_user(*line.split()[5:]) as client:
        assert await find_refused(client) == []


async def test_a_refused_command_is_named_by_the_doctor_and_at_the_start(as_user: AsUser) -> None:
    async with as_user("~*", "&*", "+@all", "-multi", "-script|load") as client:
        *_, finding = await check_server(client)
        with structlog.testing.capture_logs() as lines:
            await PermissionCheck(client).run(asyncio.Event())

    assert finding.state is FindingState.FAIL
    assert "Valkey refuses MULTI, SCRIPT LOAD to the user of REDIS_URL" in finding.detail
    assert "~* &* +@all -@dangerous +info" in (finding.remedy or "")
    assert [line["event"] for line in lines] == ["valkey_refuses_commands"]
    assert lines[0]["commands"] == ["MULTI", "SCRIPT LOAD"]


# Methods of the driver that are named otherwise than their commands, or send several.
COMMANDS_OF = {
    "delete": ("DEL",),
    "pipeline": ("MULTI", "EXEC"),
    "pubsub": (),  # To subscribe changes the connection, so it is not tried.
    "register_script": ("EVALSHA", "SCRIPT LOAD"),
    "xpending_range": ("XPENDING",),
}
CLIENTS = {"valkey", "_valkey", "pipe", "asked", "at_once"}  # What a client or its pipeline is called.
NOT_TRIED = {"APPEND"}  # A list is called `asked`, too.


def find_called(text: str, known: set[str]) -> set[str]:
    """Find the commands in a module: in its scripts, packed, and of the driver's methods."""
    found: set[str] = {
        f"{first} {second}".upper() if f"{first} {second}".upper() in known else first.upper()
        for first, second in re.findall(r"redis\.p?call\(\s*'(\w+)'(?:\s*,\s*'(\w+)')?", text)
    }
    found.update(re.findall(r"pack_command\(\s*\"([A-Z]+)", text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            receiver, method = node.func.value, node.func.attr
            if isinstance(receiver, ast.Call) and ast.unparse(receiver.func) == "cast":
                receiver = receiver.args[1]
            if ast.unparse(receiver).rpartition(".")[2] in CLIENTS:
                found.update(COMMANDS_OF.get(method, (method.upper(), method.upper().replace("_", " ", 1))))
    return found & known


async def list_category(valkey: Valkey, *category: str) -> list[str]:
    """List the commands of a category, or all categories."""
    return [
        name.decode() for name in cast("list[bytes]", await valkey.execute_command("ACL", "CAT", *category))
    ]


async def test_every_command_that_the_code_calls_is_tried(valkey: Valkey, as_user: AsUser) -> None:
    known = {
        name.replace("|", " ").upper()
        for category in await list_category(valkey)
        for name in await list_category(valkey, category)
    } - NOT_TRIED
    called = {command for path in CODE.rglob("*.py") for command in find_called(path.read_text(), known)}
    assert {"XADD", "XINFO STREAM", "HKEYS", "HINCRBY", "XAUTOCLAIM", "MEMORY USAGE", "WATCH"} <= called

    async with as_user(
        "~*", "&*", "+@all", *(f"-{one.replace(' ', '|')}" for one in called - STARTS)
    ) as client:
        assert called - STARTS - set(await find_refused(client)) == set()


async def test_trying_changes_nothing_and_leaves_no_connection_in_a_transaction(valkey: Valkey) -> None:
    assert await find_refused(valkey) == []

    assert await valkey.keys() == []
    assert await valkey.set("one", "1") is True
    assert await valkey.get("one") == b"1"


async def test_the_doctor_says_so_also_if_the_server_says_nothing_of_itself(as_user: AsUser) -> None:
    async with as_user("~*", "&*", "+@all", "-info") as client:
        [finding] = await check_server(client)

    assert "Valkey refuses INFO" in finding.detail
