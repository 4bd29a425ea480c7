"""An embedded PostgreSQL: one folder, a unix socket or a port on loopback, a password."""

import asyncio
import os
import pwd
import shutil
import signal
import sys
import tempfile
import zlib
from pathlib import Path
from urllib.parse import urlencode

import asyncpg

from adloom.runtime.embedded.binaries import (
    check_program,
    find_postgres_home,
    find_unprivileged_user,
    find_unreachable_folder,
    give_ownership,
    install_postgres,
    read_postgres_version,
)
from adloom.runtime.embedded.left_over import stop_leftover
from adloom.runtime.embedded.sockets import POSTGRES_PORT, Listening
from adloom.runtime.installation import InstallationError
from adloom.runtime.supervisor.program import Program, run

DATABASE = "adloom"
OWNER = "adloom"
INITDB_SECONDS_MAX = 120
READY_SECONDS_MAX = 60.0
READY_POLL_SECONDS = 0.02


class EmbeddedPostgres:
    """A PostgreSQL of our own; the folder is made on first use and found again later."""

    def __init__(
        self, folder: Path, *, listening: Listening, password: str, options: dict[str, str] | None = None
    ) -> None:
        self._folder = folder
        self._socket_folder = None if listening.socket_dir is None else Path(listening.socket_dir)
        self.port = listening.port
        self._password = password
        self._options = options or {}
        self._user = find_unprivileged_user()
        self._home = find_postgres_home(reachable_by=self._user)
        # A server that we find running is recognised by this: its folder may be known to it by another path.
        self._mark = f"cluster_name=adloom-{zlib.crc32(bytes(folder)):08x}"

    @property
    def socket(self) -> Path | None:
        return self._socket_folder and self._socket_folder / f".s.PGSQL.{self.port or POSTGRES_PORT}"

    @property
    def url(self) -> str:
        return self._build_address(DATABASE)

    @property
    def program(self) -> Program:
        """What to run; the signals are PostgreSQL's fast and immediate shutdown.

        The fast one ends sessions instead of waiting for them. The immediate one is for when we have died:
        after a SIGKILL its own children would hold the shared memory for a moment.
        """
        options = {
            # The socket's name ends with it.
            "port": str(self.port or POSTGRES_PORT),
            "listen_addresses": "" if self.port is None else "127.0.0.1",
            "unix_socket_directories": str(self._socket_folder or ""),
            "unix_socket_permissions": "0700",
            "logging_collector": "off",
            # Each process has a few; of delivery processes there may be dozens.
            "max_connections": "300",
            # Processes that would wait for nothing, with 6 MB: reads are done where they are asked for, and nobody
            # subscribes to other servers.
            "io_method": "sync",
            "max_logical_replication_workers": "0",
            # As it chooses by itself, it has 8 MB for the reads that all connections could have under way.
            "io_max_concurrency": "4",
            # Of transactions that are serializable, which we have none of: 4 MB.
            "max_pred_locks_per_transaction": "10",
            # What these write, commits and checkpoints wait for too: they look once a second, not five times, and the
            # one that writes pages may write as many a second as before.
            "wal_writer_delay": "1s",
            "bgwriter_delay": "1s",
            "bgwriter_lru_maxpages": "500",
            # A new file of the write-ahead log is not filled with zeros first: a commit waited for these 16 MB.
            "wal_init_zero": "off",
            # Statements that fail are reported where they were sent from.
            "log_min_messages": "fatal",
            **self._options,
        }
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        settings += ["-c", self._mark]
        return Program(
            name="postgres",
            arguments=(str(self._home / "bin" / "postgres"), "-D", str(self._folder), *settings),
            environment=_build_environment(),
            user=self._user,
            opened_folder=find_unreachable_folder(self._folder, self._user),
            stop_signal=signal.SIGINT,
            death_signal=signal.SIGQUIT,
        )

    async def prepare(self) -> None:
        """Create the cluster if there is none, and stop a server that an earlier run left on it."""
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(install_postgres, self._home)
        for name in ("postgres", "initdb"):
            await asyncio.to_thread(check_program, self._home / "bin" / name, read_postgres_version())
        if (self._folder / "PG_VERSION").exists():
            _check_version(self._folder / "PG_VERSION")
            await stop_leftover(self._folder / "postmaster.pid", mark=self._mark, stop_signal=signal.SIGINT)
            # Another version, or another root, may have chosen another user.
            if self._user is not None and self._folder.stat().st_uid != pwd.getpwnam(self._user).pw_uid:
                await asyncio.to_thread(give_ownership, self._folder, self._user)
        else:
            await self._make_cluster()
        if self._socket_folder is not None:
            # Of a server that was killed. Its lock names a process, and that number may be another's by now.
            for left in self._socket_folder.glob(".s.PGSQL.*"):
                left.unlink()

    async def wait_until_ready(self) -> None:
        """Wait until the server answers, and make sure that it has our database."""
        async with asyncio.timeout(READY_SECONDS_MAX):
            while True:
                try:
                    connection = await asyncpg.connect(self.url)
                    break
                except asyncpg.InvalidCatalogNameError:
                    await self._name_database()
                except (OSError, asyncpg.CannotConnectNowError):
                    await asyncio.sleep(READY_POLL_SECONDS)
                except asyncpg.InvalidPasswordError as error:
                    raise InstallationError(
                        "secrets.json has another postgres_password than the database. Put the old one back"
                    ) from error
        await connection.close()

    async def _name_database(self) -> None:
        """Give our name to the database that a new cluster has: a copy takes a third of a second, and 10 MB of buffers."""
        connection = await asyncpg.connect(self._build_address("template1"))
        try:
            await connection.execute(f"ALTER DATABASE postgres RENAME TO {DATABASE}")
        except asyncpg.InvalidCatalogNameError:  # Somebody has dropped ours.
            await connection.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            await connection.close()

    def _build_address(self, database: str) -> str:
        place = f"postgresql://{OWNER}:{self._password}@"
        if self._socket_folder is None:
            return f"{place}127.0.0.1:{self.port}/{database}"
        port = {} if self.port is None else {"port": self.port}
        return f"{place}/{database}?{urlencode({'host': self._socket_folder, **port}, safe='/')}"

    async def _make_cluster(self) -> None:
        for abandoned in self._folder.parent.glob(f"{self._folder.name}.*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        # A cluster that is cut off half made must not be taken for a whole one, so it gets its name last.
        unfinished = Path(tempfile.mkdtemp(prefix=f"{self._folder.name}.", dir=self._folder.parent))
        password_file = unfinished / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self._password, encoding="utf-8")
        give_ownership(unfinished, self._user)
        try:
            await run(self._make_initdb(unfinished), seconds_max=INITDB_SECONDS_MAX)
            (unfinished / "cluster").rename(self._folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def _make_initdb(self, unfinished: Path) -> Program:
        return Program(
            name="initdb",
            arguments=(
                str(self._home / "bin" / "initdb"),
                f"--pgdata={unfinished / 'cluster'}",
                f"--username={OWNER}",
                f"--pwfile={unfinished / 'password'}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--no-locale",
                # Texts sort by their bytes, but letters have their capitals in every script: search needs that.
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--no-instructions",
                # All files at once: one after another, a thousand of them wait 2 s for the disk.
                *(["--sync-method=syncfs"] if sys.platform == "linux" else []),
            ),
            environment=_build_environment(),
            user=self._user,
            opened_folder=find_unreachable_folder(unfinished, self._user),
            # It cleans up after itself, and its own child does not outlive it.
            death_signal=signal.SIGTERM,
        )


def _build_environment() -> dict[str, str]:
    # None of the variables by which PostgreSQL's programs can be led elsewhere.
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def _check_version(file: Path) -> None:
    found, ours = file.read_text().strip(), read_postgres_version().partition(".")[0]
    if found != ours:
        raise InstallationError(
            f"The files in {file.parent} are of PostgreSQL {found}, and this version of Adloom has {ours}. "
            "Start the version that made them, make a backup, and restore that into another data directory."
        )
