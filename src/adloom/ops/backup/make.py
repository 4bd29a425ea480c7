"""Makes a backup of an installation that runs, or of one that is stopped.

Why it is consistent: an accepted event is in the spool, then in Valkey's stream, then in PostgreSQL, and it leaves a
place only when it is in the next. The places are read against that order in time but with it in the archive:

1. PostgreSQL's snapshot first. It has the events that are counted, and the position up to which they are, in one
   transaction; so do the charges, with the states of the campaigns.
2. Then the spool, then Valkey's files. What was accepted before the backup began and is not in the snapshot is still in
   the stream, or in the spool; if it moves on while we read, it only moves to a place that we read later.

3. Uploaded files last: what the snapshot names was written before it. They never change, so they are read by name.

After a restore the worker goes on at the position of the snapshot, and counts what the stream has behind it. An event
that is in two places has one correlation id, and counts once. The stream must not have lost entries behind that
position while we read; that is checked.
"""

# ruff: noqa: ASYNC240 - a command, which has nothing else to do meanwhile

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from adloom import VERSION
from adloom.core.errors import describe_error
from adloom.core.progress import ProgressListener
from adloom.events.cursor_store import CURSORS
from adloom.events.log.spool.format import parse_name
from adloom.events.log.stream import STREAM
from adloom.ops.backup.append_only import FixedFile, open_append_only
from adloom.ops.backup.archive import (
    ASSETS,
    DUMP,
    FORMAT,
    MANIFEST,
    SPOOL,
    VALKEY,
    ArchiveWriter,
    BackupError,
    BackupManifest,
    begin_bytes,
    extract_archive,
    verify_archive,
    write_archive,
)
from adloom.ops.backup.dump import count_tables, dump_database
from adloom.runtime.embedded.servers import describe_servers, find_database_url, find_redis_url
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.failover.primary import connect
from adloom.runtime.installation import INSTALLATION_NAME, DataDirectory
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Connection
from adloom.runtime.schema import raise_if_unusable, read_current_revision
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from adloom.runtime.valkey import VALKEY_AWAY, open_valkey

COUNTED: Final = "event_tables"
TABLES: Final = (
    "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace <> 'pg_catalog'::regnamespace"
)
STOP_SECONDS_MAX: Final = 60.0


class BackupSource(msgspec.Struct, frozen=True, kw_only=True):
    """What is backed up; without an address of Valkey nothing runs that could change it."""

    directory: DataDirectory
    spool: Path
    assets: Path | None  # None: in a bucket, which is backed up by its own means.
    database_url: str
    redis_url: str | None


async def make_backup(  # noqa: PLR0913 - what is backed up, and where to
    directory: DataDirectory,
    spool: Path,
    file: Path,
    progress: ProgressListener,
    *,
    now: datetime,
    assets: Path | None = None,
) -> BackupManifest:
    """Write an archive, verify it, and give it its name."""
    if file.exists():
        raise BackupError(f"{file} is there already. Choose another name, or remove it.")
    if not file.parent.is_dir():
        raise BackupError(f"There is no folder {file.parent}.")
    made: list[BackupManifest] = []

    async def write(source: BackupSource) -> None:
        made.append(await _write(source, file, progress, now=now))

    try:
        await _with_source(directory, spool, assets, write)
    except OSError as error:
        raise BackupError(
            f"The archive cannot be made: {describe_error(error)}. It needs room for about twice its size in {file.parent}."
        ) from error
    return made[0]


async def _with_source(
    directory: DataDirectory,
    spool: Path,
    assets: Path | None,
    work: Callable[[BackupSource], Awaitable[None]],
) -> None:
    """Work on an installation that runs, or start PostgreSQL alone for it."""
    last, secrets = directory.read_installation(), directory.read_secrets()
    if last is None or secrets is None or not (directory.path / "postgres").is_dir():
        raise BackupError(
            f"There is nothing to back up in {directory.path}: it has no PostgreSQL of its own. "
            "Name another --data-dir; servers of your own are backed up by their own means."
        )
    if directory.read_holder_pid() is not None:
        database_url, redis_url = find_database_url({}, directory), find_redis_url({}, directory)
        await work(
            BackupSource(
                directory=directory,
                spool=spool,
                assets=assets,
                database_url=database_url,
                redis_url=redis_url,
            )
        )
        return
    with directory.lock():
        here = Listening(port=find_port())
        servers = describe_servers({}, directory.path, secrets, postgres=here, valkey=here)
        postgres = servers.postgres
        assert postgres is not None, "no other was named"

        async def work_alone(supervisor: Supervisor) -> None:
            await supervisor.start([msgspec.structs.replace(postgres, stop_seconds_max=STOP_SECONDS_MAX)])
            await work(
                BackupSource(
                    directory=directory,
                    spool=spool,
                    assets=assets,
                    database_url=servers.database_url,
                    redis_url=None,
                )
            )

        await run_supervised(work_alone)


async def _write(
    source: BackupSource, file: Path, progress: ProgressListener, *, now: datetime
) -> BackupManifest:
    folder = Path(tempfile.mkdtemp(prefix=f".{file.name}.", dir=file.parent))
    try:
        unfinished = folder / "archive"
        manifest = await _collect(source, folder, unfinished, progress, now=now)
        verify_archive(unfinished, progress)
        (folder / "again").mkdir()
        note = begin_bytes(progress, "Reading", unfinished.stat().st_size)
        extract_archive(unfinished, folder / "again", note)
        await count_tables(folder / "again" / DUMP)
        unfinished.rename(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return manifest


async def _collect(
    source: BackupSource, folder: Path, unfinished: Path, progress: ProgressListener, *, now: datetime
) -> BackupManifest:
    with raise_if_unusable(source.database_url):
        connection = await connect(source.database_url)
    try:
        # Open until the dump has ended: the snapshot lives as long as it.
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            snapshot: str = await connection.fetchval("SELECT pg_export_snapshot()")
            manifest = BackupManifest(
                format=FORMAT, version=VERSION, revision=await _read_revision(connection), made_at=now
            )
            with contextlib.ExitStack() as closing:
                # In this order: see above.
                spooled = _open_spool(source.spool)
                appended = open_append_only(source.directory.path / "valkey")
                for one in [*spooled, *appended]:
                    closing.enter_context(one.file)
                await _check_not_trimmed(connection, source)
                await _dump(connection, source, snapshot, folder / DUMP, progress)
                await asyncio.to_thread(
                    _write_members, unfinished, source, manifest, spooled, appended, folder / DUMP, progress
                )
    finally:
        await connection.close()
    return manifest


async def _read_revision(connection: Connection) -> str:
    revision = await read_current_revision(connection)
    if revision is None:
        raise BackupError("The database is empty: there is nothing to back up yet.")
    return revision


async def _dump(
    connection: Connection, source: BackupSource, snapshot: str, target: Path, progress: ProgressListener
) -> None:
    tables: int = await connection.fetchval(TABLES)
    progress.begin("PostgreSQL", tables, unit="tables")
    await dump_database(source.database_url, snapshot, target, progress.advance)


def _write_members(  # noqa: PLR0913, PLR0917 - all that is in it
    unfinished: Path,
    source: BackupSource,
    manifest: BackupManifest,
    spooled: list[FixedFile],
    appended: list[FixedFile],
    dump: Path,
    progress: ProgressListener,
) -> None:
    size = sum(one.size for one in [*spooled, *appended]) + dump.stat().st_size
    with write_archive(unfinished, begin_bytes(progress, "Archive", size)) as archive:
        archive.add_bytes(MANIFEST, msgspec.json.encode(manifest))
        for path in sorted(source.directory.path.glob("*.json")):
            if path.name not in {INSTALLATION_NAME, MANIFEST}:
                archive.add_bytes(path.name, path.read_bytes())
        for place, files in ((SPOOL, spooled), (VALKEY, appended)):
            for one in files:
                archive.add(f"{place}/{one.name}", one.file, one.size)
        _add_assets(archive, source.assets)
        with dump.open("rb") as file:
            archive.add(DUMP, file, dump.stat().st_size)


def _add_assets(archive: ArchiveWriter, folder: Path | None) -> None:
    if folder is None or not folder.is_dir():
        return
    for path in sorted(folder.rglob("*")):
        # One that is being written has no name yet, and one that was removed meanwhile is in no banner.
        if not path.name.startswith(".") and path.is_file():
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                archive.add(f"{ASSETS}/{path.relative_to(folder)}", file, os.fstat(file.fileno()).st_size)


def _open_spool(folder: Path) -> list[FixedFile]:
    opened: list[FixedFile] = []
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in (one for one in paths if parse_name(one.name) is not None):
        with contextlib.suppress(FileNotFoundError):  # Drained meanwhile: then it is in the stream.
            file = path.open("rb")
            opened.append(FixedFile(path.name, file, os.fstat(file.fileno()).st_size))
    return opened


async def _check_not_trimmed(connection: Connection, source: BackupSource) -> None:
    """Raise BackupError if the stream has lost entries that the snapshot has not counted."""
    if source.redis_url is None:
        return
    cursors = {row["projection"]: row["entry_id"] for row in await connection.fetch(CURSORS)}
    counted = cursors.get(COUNTED)
    try:
        async with open_valkey(source.redis_url) as valkey:
            if counted is None or not await valkey.exists(STREAM):
                return
            about = await valkey.xinfo_stream(STREAM)
    except VALKEY_AWAY as error:
        raise BackupError(f"Valkey does not answer: {error!r}. Try again when it does.") from error
    if _parse_order(about["max-deleted-entry-id"]) > _parse_order(counted):
        raise BackupError(
            "The event log was trimmed behind what is counted. Try again when the worker has caught up."
        )


def _parse_order(entry_id: bytes | str) -> tuple[int, ...]:
    text = entry_id.decode() if isinstance(entry_id, bytes) else entry_id
    return tuple(int(part) for part in text.split("-"))
