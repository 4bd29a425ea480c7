"""The embedded Valkey: everything that it has accepted survives."""

import asyncio
import os
import signal
from pathlib import Path

from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.ports import free_port
from adloom.runtime.supervisor.program import start
from adloom.runtime.valkey import open_valkey


async def test_accepted_writes_survive_a_sudden_death(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path / "valkey", port=free_port(), password="p" * 20)
    await valkey.prepare()
    process = await start(valkey.program)
    await valkey.wait_until_ready()
    async with open_valkey(valkey.url) as client:
        await client.xadd("ledger", {"e": "accepted"})
    process.send_signal(signal.SIGKILL)
    await process.wait()

    await valkey.prepare()
    process = await start(valkey.program)
    await valkey.wait_until_ready()
    async with open_valkey(valkey.url) as client:
        kept = await client.xlen("ledger")
    process.send_signal(valkey.program.stop_signal)
    await process.wait()

    assert kept == 1


async def test_a_server_left_by_an_earlier_run_is_stopped_first(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path / "valkey", port=free_port(), password="p" * 20)
    await valkey.prepare()
    left = await start(valkey.program)
    await valkey.wait_until_ready()

    await valkey.prepare()

    async with asyncio.timeout(5):
        assert await left.wait() == 0


async def test_another_process_with_the_pid_of_an_old_server_is_left_alone(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path / "valkey", port=free_port(), password="p" * 20)
    (tmp_path / "valkey").mkdir()
    (tmp_path / "valkey" / "valkey.pid").write_text(str(os.getpid()))

    await valkey.prepare()

    assert not (tmp_path / "valkey" / "valkey.pid").exists()


async def test_the_password_is_not_in_the_list_of_processes(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path / "valkey", port=free_port(), password="a-password-of-this-test")
    await valkey.prepare()

    assert not any("a-password-of-this-test" in word for word in valkey.program.arguments)
    assert (tmp_path / "valkey" / "valkey.conf").stat().st_mode & 0o777 == 0o600


async def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b'a "quoted" b\\n \xc3\xa4 \xff\n') / "valkey"
    valkey = EmbeddedValkey(folder, port=free_port(), password="p" * 20)
    await valkey.prepare()
    process = await start(valkey.program)
    await valkey.wait_until_ready()
    process.send_signal(valkey.program.stop_signal)
    await process.wait()

    assert (folder / "appendonlydir").is_dir()


async def test_a_full_valkey_refuses_writes(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path, port=free_port(), password="p" * 20)
    await valkey.prepare()
    process = await start(valkey.program)
    await valkey.wait_until_ready()

    async with open_valkey(valkey.url) as client:
        settings = await client.config_get("maxmemory*")
    process.send_signal(valkey.program.stop_signal)
    await process.wait()

    assert int(settings["maxmemory"] or 0) > 0
    assert settings["maxmemory-policy"] == "noeviction"
