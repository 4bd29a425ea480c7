"""What Valkey refuses to our user is named."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import structlog.testing

from adloom.events.log.permissions import PermissionCheck, find_refused
from adloom.ops.checks.event_log import check_server
from adloom.ops.checks.finding import FindingState
from adloom.runtime.valkey import Valkey, open_valkey

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


async def test_the_doctor_says_so_also_if_the_server_says_nothing_of_itself(as_user: AsUser) -> None:
    async with as_user("~*", "&*", "+@all", "-info") as client:
        [finding] = await check_server(client)

    assert "Valkey refuses INFO" in finding.detail
