"""The embedded Valkey: everything that it has accepted survives."""

import asyncio
import os
import pwd
import signal
from pathlib import Path

import pytest
from redis.exceptions import AuthenticationError, ResponseError

from adloom.runtime.embedded.binaries import find_unprivileged_user
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.embedded.valkey import EmbeddedValkey, find_memory_bytes
from adloom.runtime.ports import find_port
from adloom.runtime.supervisor.program import start
from adloom.runtime.valkey import open_valkey


async def test_accepted_writes_survive_a_sudden_death(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path / "valkey", listening=Listening(port=find_port()), password="p" * 20)
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
    valkey = EmbeddedValkey(tmp_path / "valkey", listening=Listening(port=find_port()), password="p" * 20)
    await valkey.prepare()
    left = await start(valkey.program)
    await valkey.wait_until_ready()

    await valkey.prepare()

    async with asyncio.timeout(60):
        assert await left.wait() == 0


async def test_another_process_with_the_pid_of_an_old_server_is_left_alone(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path / "valkey", listening=Listening(port=find_port()), password="p" * 20)
    (tmp_path / "valkey").mkdir()
    (tmp_path / "valkey" / "valkey.pid").write_text(str(os.getpid()))

    await valkey.prepare()

    assert not (tmp_path / "valkey" / "valkey.pid").exists()


async def test_the_password_is_not_in_the_list_of_processes(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(
        tmp_path / "valkey", listening=Listening(port=find_port()), password="a-password-of-this-test"
    )
    await valkey.prepare()

    assert not any("a-password-of-this-test" in word for word in valkey.program.arguments)
    assert (tmp_path / "valkey" / "valkey.conf").stat().st_mode & 0o777 == 0o600


async def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b'a "quoted" b\\n \xc3\xa4 \xff\n') / "valkey"
    valkey = EmbeddedValkey(folder, listening=Listening(port=find_port()), password="p" * 20)
    await valkey.prepare()
    process = await start(valkey.program)
    await valkey.wait_until_ready()
    process.send_signal(valkey.program.stop_signal)
    await process.wait()

    assert (folder / "appendonlydir").is_dir()


async def test_the_password_gives_no_power_over_the_server(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path / "valkey", listening=Listening(port=find_port()), password="p" * 20)
    await valkey.prepare()
    process = await start(valkey.program)
    await valkey.wait_until_ready()

    async with open_valkey(valkey.url) as client:
        for command in (
            ("CONFIG", "SET", "dir", "/"),
            ("CONFIG", "GET", "dir"),
            ("MODULE", "LOAD", "/x.so"),
            ("DEBUG", "SLEEP", "0"),
            ("ACL", "SETUSER", "default", "+@all"),
            ("SHUTDOWN", "NOSAVE"),
            ("REPLICAOF", "127.0.0.1", "1"),
            ("FLUSHALL",),
            ("MONITOR",),
        ):
            with pytest.raises(ResponseError, match=r"permission|not allowed"):
                await client.execute_command(*command)
        assert (await client.info("memory"))["maxmemory"] > 0
        assert await client.eval("return redis.call('INFO', 'memory')", 0)
    for password in (":another@", ""):
        async with open_valkey(valkey.url.replace(f":{'p' * 20}@", password)) as client:
            with pytest.raises(AuthenticationError):
                await client.ping()
    process.send_signal(valkey.program.stop_signal)
    await process.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_the_server_of_root_runs_as_another_user_and_takes_over_roots_files(tmp_path: Path) -> None:
    folder = tmp_path / "valkey"
    (folder / "appendonlydir").mkdir(parents=True, mode=0o700)  # As earlier versions left it, owned by root.
    valkey = EmbeddedValkey(folder, listening=Listening(port=find_port()), password="p" * 20)
    await valkey.prepare()
    process = await start(valkey.program)
    await valkey.wait_until_ready()

    status = await asyncio.to_thread(Path(f"/proc/{process.pid}/status").read_text)
    async with open_valkey(valkey.url) as client:
        await client.set("written", "1")
    process.send_signal(valkey.program.stop_signal)
    await process.wait()

    user = find_unprivileged_user()
    assert user is not None
    uid = pwd.getpwnam(user).pw_uid
    assert f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n" in status
    assert {path.stat().st_uid for path in (folder, *folder.rglob("*"))} == {uid}


async def test_a_full_valkey_refuses_writes(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path, listening=Listening(port=find_port()), password="p" * 20)
    await valkey.prepare()
    process = await start(valkey.program)
    await valkey.wait_until_ready()

    async with open_valkey(valkey.url) as client:
        memory = await client.info("memory")
    process.send_signal(valkey.program.stop_signal)
    await process.wait()

    assert memory["maxmemory"] > 0
    assert memory["maxmemory_policy"] == "noeviction"


def test_the_memory_of_a_container_counts_where_it_is_less(tmp_path: Path) -> None:
    of_the_machine = find_memory_bytes(tmp_path / "none")

    found: list[int] = []
    for limit in ("max\n", f"{of_the_machine * 2}\n", "1073741824\n"):
        (tmp_path / "memory.max").write_text(limit)
        found.append(find_memory_bytes(tmp_path))

    assert found == [of_the_machine, of_the_machine, 1 << 30]
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("536870912\n")
    assert find_memory_bytes(tmp_path) == 1 << 29
