"""The folder of the servers' unix sockets."""

import shutil
import socket
from pathlib import Path

import asyncpg
import pytest

from adloom.runtime.embedded.binaries import find_unprivileged_user
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.sockets import (
    LONGEST_NAME,
    Listening,
    is_usable,
    make_socket_folder,
    remove_socket_folder,
)
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.supervisor.program import start
from adloom.runtime.valkey import open_valkey
from tests.support.product import an_open_folder

USER = find_unprivileged_user()
DEEP = "d" * 60


def mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_it_is_in_the_data_directory_and_closed_to_others() -> None:
    with an_open_folder() as data:
        folder = make_socket_folder(data, USER, last=None)

        assert folder == data / "sockets"
        assert mode_of(folder) == 0o700
        assert USER is None or folder.owner() == USER
        remove_socket_folder(Listening(socket_dir=str(folder)))
        assert not folder.exists()


@pytest.mark.parametrize("name", [f"{DEEP}/{DEEP}", "a,b", "büro", "two words"])
def test_for_a_path_that_a_socket_cannot_have_it_is_a_short_one_and_the_next_start_finds_it_again(
    name: str,
) -> None:
    with an_open_folder() as open_folder:
        data = open_folder / name
        data.mkdir(parents=True)

        folder = make_socket_folder(data, USER, last=None)

        try:
            assert is_usable(folder)
            assert not folder.is_relative_to(open_folder)
            assert mode_of(folder) == 0o700
            assert make_socket_folder(data, USER, last=folder) == folder
        finally:
            folder.rmdir()


def test_a_folder_that_somebody_has_put_in_its_place_is_not_used() -> None:
    with an_open_folder() as open_folder:
        data, other = open_folder / "a,b", open_folder / "other"
        data.mkdir()
        other.symlink_to(open_folder)

        folder = make_socket_folder(data, USER, last=other)

        folder.rmdir()
        assert folder not in {other, open_folder}


def test_the_longest_socket_that_is_allowed_can_be_bound() -> None:
    with an_open_folder() as open_folder:
        folder = open_folder
        while is_usable(folder.with_name(f"{folder.name}x")):
            folder = folder.with_name(f"{folder.name}x")
        folder.mkdir(exist_ok=True)

        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(folder / LONGEST_NAME))
        shutil.rmtree(folder)


@pytest.mark.server
async def test_the_servers_answer_on_sockets_alone_also_after_a_sudden_death(tmp_path: Path) -> None:
    # The servers' user cannot reach this folder if we are root: the sockets are elsewhere then.
    folder = make_socket_folder(tmp_path, USER, last=None)
    place = Listening(socket_dir=str(folder))
    postgres = EmbeddedPostgres(tmp_path / "postgres", listening=place, password="p" * 20)
    valkey = EmbeddedValkey(tmp_path / "valkey", listening=place, password="p" * 20)
    try:
        for server in (postgres, valkey):
            await server.prepare()
            killed = await start(server.program)
            await server.wait_until_ready()
            killed.kill()
            await killed.wait()
            assert list(folder.iterdir())

            await server.prepare()
            process = await start(server.program)
            await server.wait_until_ready()
            if server is postgres:
                connection = await asyncpg.connect(server.url)
                assert await connection.fetchval("SHOW listen_addresses") == ""
                await connection.close()
            else:
                async with open_valkey(server.url) as client:
                    assert (await client.info("server"))["tcp_port"] == 0
            process.send_signal(server.program.stop_signal)
            assert await process.wait() == 0
    finally:
        left = list(folder.iterdir())
        shutil.rmtree(folder)
    assert left == []
