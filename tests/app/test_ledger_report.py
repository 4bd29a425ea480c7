"""`adloom ledger status` and `adloom ledger dead …`: their output, their effects and their exit codes."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from adloom.cli import ledger_report
from adloom.cli.ledger_report import LedgerCommandError
from adloom.events.log.event import LogEntry, encode_event
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.projections.dead_letters import DeadLetterQueue, wrap_redelivery
from adloom.events.projections.group import ConsumerGroup
from adloom.events.projections.quarantine import TRIES_MAX
from adloom.runtime.ports import find_port
from adloom.runtime.valkey import Valkey
from tests.events.builders import an_impression
from tests.support.forked import run_forked

WIDTH = 200


class Screen:
    """A console whose text can be read."""

    def __init__(self) -> None:
        self._file = io.StringIO()
        self.console = Console(file=self._file, width=WIDTH)

    @property
    def text(self) -> str:
        return self._file.getvalue()


@pytest.fixture
def screen() -> Screen:
    return Screen()


async def add_dead_letter(
    valkey: Valkey, data: bytes = b"no event", *, entry_id: str = "1794720000000-0"
) -> str:
    """Add a dead letter; return its id."""
    dead_letters = DeadLetterQueue(valkey)
    await dead_letters.add(
        "event_tables", entry_id, data, reason="It is no [event].", tries=TRIES_MAX, again=data
    )
    return (await dead_letters.list_after())[-1].id


async def test_the_status_of_a_new_installation_is_empty(
    database_url: str, redis_url: str, screen: Screen
) -> None:
    await ledger_report.show_status(database_url, redis_url, screen.console)

    assert "The ledger is empty." in screen.text
    assert "event_tables" in screen.text
    assert "nobody" in screen.text


async def test_the_status_shows_every_projection(
    database_url: str, redis_url: str, valkey: Valkey, screen: Screen
) -> None:
    await ValkeyEventLog(valkey).append([encode_event(an_impression())] * 3)
    await ConsumerGroup(valkey, "event_tables", consumer="worker@host", incarnation="1").acquire()
    await add_dead_letter(valkey)

    await ledger_report.show_status(database_url, redis_url, screen.console)

    head, *rows = screen.text.splitlines()
    assert head.startswith("3 entries, about ")
    assert head.endswith("; 1 dead letters")
    by_name = {row.split()[0]: row.split() for row in rows}
    assert {"projection", "event_tables", "topics", "frequency"} <= by_name.keys()
    assert by_name["event_tables"][1:3] == ["0-0", "3"]
    assert "worker@host" in by_name["event_tables"]
    assert by_name["event_tables"][-1] == "1"
    assert "nobody" in by_name["topics"]


async def test_dead_letters_are_listed(redis_url: str, valkey: Valkey, screen: Screen) -> None:
    await ledger_report.list_dead(redis_url, screen.console)
    assert screen.text == "There are no dead letters.\n"
    letter_id = await add_dead_letter(valkey)

    await ledger_report.list_dead(redis_url, screen.console)

    assert letter_id in screen.text
    assert "It is no [event]." in screen.text
    assert "1 dead letters" in screen.text


async def test_a_dead_letter_shows_its_event_if_it_can_be_decoded(
    redis_url: str, valkey: Valkey, screen: Screen
) -> None:
    event = encode_event(an_impression("an-id-of-its-own"))
    wrapped = wrap_redelivery(LogEntry("7-0", event), "frequency")
    for number, data in enumerate([event, wrapped, b"no event"]):
        letter_id = await add_dead_letter(valkey, data, entry_id=f"179472000000{number}-0")
        await ledger_report.show_dead(redis_url, letter_id, screen.console)

    assert screen.text.count('"correlation_id": "an-id-of-its-own"') == 2
    assert screen.text.count('"kind": "Impression"') == 2
    assert "unreadable, 8 bytes: b'no event'" in screen.text


async def test_one_dead_letter_or_all_are_retried(redis_url: str, valkey: Valkey, screen: Screen) -> None:
    first = await add_dead_letter(valkey, b"1", entry_id="1-0")
    for number in (2, 3):
        await add_dead_letter(valkey, b"%d" % number, entry_id=f"{number}-0")

    await ledger_report.retry_dead(redis_url, [first], screen.console)
    assert await DeadLetterQueue(valkey).count() == 2
    await ledger_report.retry_dead(redis_url, None, screen.console)

    assert await DeadLetterQueue(valkey).count() == 0
    assert await valkey.xlen(STREAM) == 3
    assert screen.text.startswith("1 appended to the ledger again")


async def test_a_dead_letter_is_deleted(redis_url: str, valkey: Valkey, screen: Screen) -> None:
    letter_id = await add_dead_letter(valkey)

    await ledger_report.forget_dead(redis_url, letter_id, screen.console)

    assert await DeadLetterQueue(valkey).count() == 0
    assert await valkey.xlen(STREAM) == 0


@pytest.mark.parametrize("letter_id", ["1-0", "latest", "", "-", "1-x", "²-0"])
async def test_an_unknown_dead_letter_is_an_error(redis_url: str, screen: Screen, letter_id: str) -> None:
    for command in (ledger_report.show_dead, ledger_report.forget_dead):
        with pytest.raises(LedgerCommandError, match="dead letter"):
            await command(redis_url, letter_id, screen.console)
    with pytest.raises(LedgerCommandError, match="dead letter"):
        await ledger_report.retry_dead(redis_url, [letter_id], screen.console)


async def test_the_error_about_an_unreachable_server_has_no_password(screen: Screen) -> None:
    unreachable = f"redis://:a-password@127.0.0.1:{find_port()}/0"
    database = f"postgresql://ada:a-password@127.0.0.1:{find_port()}/ads"

    with pytest.raises(LedgerCommandError) as status:
        await ledger_report.show_status(database, unreachable, screen.console)
    with pytest.raises(LedgerCommandError) as dead:
        await ledger_report.list_dead(unreachable, screen.console)

    assert "a-password" not in f"{status.value}{dead.value}"


# --- as commands


def adloom(database_url: str, redis_url: str, *words: str) -> subprocess.CompletedProcess[str]:
    return run_forked(
        [sys.executable, "-m", "adloom", "ledger", *words],
        env={**os.environ, "DATABASE_URL": database_url, "REDIS_URL": redis_url},
        timeout=60,
    )


@pytest.mark.process
async def test_the_commands_have_the_right_exit_codes(
    database_url: str, redis_url: str, valkey: Valkey, tmp_path: Path
) -> None:
    letter_id = await add_dead_letter(valkey)

    status = adloom(database_url, redis_url, "status", "--data-dir", str(tmp_path))
    shown = adloom(database_url, redis_url, "dead", "show", letter_id)
    neither = adloom(database_url, redis_url, "dead", "retry")
    unknown = adloom(database_url, redis_url, "dead", "forget", "1-1")

    assert (status.returncode, status.stderr) == (0, "")
    assert "event_tables" in status.stdout
    assert shown.returncode == 0
    assert "It is no [event]." in shown.stdout
    assert neither.returncode == 2
    assert (unknown.returncode, unknown.stderr) == (1, "adloom: There is no dead letter 1-1.\n")
