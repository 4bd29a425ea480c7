"""Restores a backup into a data directory, whole or not at all: what is there is touched last."""

# ruff: noqa: ASYNC240 - a command, which has nothing else to do meanwhile

import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from adloom.core.progress import ProgressListener
from adloom.events.log.stream import STREAM
from adloom.ops.backup.append_only import FOLDER
from adloom.ops.backup.archive import (
    ASSETS,
    DUMP,
    NATS,
    SECRETS,
    SPOOL,
    VALKEY,
    BackupError,
    BackupManifest,
    begin_bytes,
    extract_archive,
    verify_archive,
)
from adloom.ops.backup.dump import count_tables, restore_database
from adloom.runtime.embedded.binaries import find_unprivileged_user, give_ownership
from adloom.runtime.embedded.servers import describe_servers
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.files.store import set_modes
from adloom.runtime.installation import INSTALLATION_NAME, DataDirectory, Secrets
from adloom.runtime.ports import find_port
from adloom.runtime.schema import read_newest_revision
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from adloom.runtime.valkey import open_valkey

STOP_SECONDS_MAX: Final = 60.0
POSTGRES: Final = "postgres"


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore has done; `replaced` is where it has put what was there."""

    manifest: BackupManifest
    entries: int
    replaced: Path | None


async def restore_backup(
    directory: DataDirectory,
    file: Path,
    progress: ProgressListener,
    *,
    now: datetime,
    is_replacing: bool,
) -> Restored:
    """Verify an archive, and make an installation of it; BackupError where that cannot be."""
    if not file.is_file():
        raise BackupError(f"There is no file {file}.")
    manifest = verify_archive(file, progress)
    if manifest.revision > read_newest_revision():
        raise BackupError(
            f"{file} was made by Adloom {manifest.version} with the schema {manifest.revision}; "
            f"this one knows schemas up to {read_newest_revision()}. Install that version, or a newer one."
        )
    directory.make()
    with directory.lock():
        present = _list_present(directory.path)
        if present and not is_replacing:
            raise BackupError(
                f"{directory.path} has an installation ({', '.join(one.name for one in present)}). "
                "Choose an empty --data-dir, or replace it with --replace."
            )
        folder = Path(tempfile.mkdtemp(prefix="restoring.", dir=directory.path))
        try:
            folder.chmod(0o755)  # As the data directory itself: PostgreSQL does not run as root.
            entries = await _build(file, folder, progress)
            replaced = _put_aside(directory.path, present, now=now)
            for one in sorted(folder.iterdir()):
                one.rename(directory.path / one.name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return Restored(manifest=manifest, entries=entries, replaced=replaced)


def _list_present(folder: Path) -> list[Path]:
    names = (POSTGRES, VALKEY, NATS, SPOOL, ASSETS, SECRETS)
    found = [folder / name for name in names]
    return [one for one in found if one.is_file() or (one.is_dir() and any(one.iterdir()))]


def _put_aside(folder: Path, present: list[Path], *, now: datetime) -> Path | None:
    """Move what is there into a folder of its own, for people to remove."""
    others = [one for one in folder.glob("*.json") if one not in present]
    empty = [
        one
        for name in (POSTGRES, VALKEY, NATS, SPOOL, ASSETS)
        if (one := folder / name) not in present and one.is_dir()
    ]
    for one in empty:
        one.rmdir()
    if not present:
        (folder / INSTALLATION_NAME).unlink(missing_ok=True)
        return None
    target = folder / f"replaced-{now:%Y%m%dT%H%M%S}"
    target.mkdir(mode=0o700)
    for one in [*present, *others]:
        one.rename(target / one.name)
    return target


async def _build(file: Path, folder: Path, progress: ProgressListener) -> int:
    """Build the data of an installation in a folder; return how many entries its event log has."""
    extract_archive(file, folder, begin_bytes(progress, "Archive", file.stat().st_size))
    secrets = msgspec.json.decode((folder / SECRETS).read_bytes(), type=Secrets)
    _place_append_only(folder / VALKEY)
    servers = describe_servers(
        {}, folder, secrets, postgres=Listening(port=find_port()), valkey=Listening(port=find_port())
    )
    found: list[int] = []

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([_make_patient(servers.postgres), _make_patient(servers.valkey)])
        progress.begin("PostgreSQL", await count_tables(folder / DUMP), unit="tables")
        await restore_database(servers.database_url, folder / DUMP, progress.advance)
        # A Valkey that has started has read all of its files.
        async with open_valkey(servers.redis_url) as valkey:
            found.append(await valkey.xlen(STREAM))

    await run_supervised(work)
    (folder / DUMP).unlink()
    shutil.rmtree(folder / "logs", ignore_errors=True)
    for name in (SPOOL, ASSETS):
        if (folder / name).is_dir():
            give_ownership(folder / name, find_unprivileged_user())
    set_modes(folder / ASSETS)
    return found[0]


def _place_append_only(folder: Path) -> None:
    files = list(folder.iterdir()) if folder.is_dir() else []
    target = folder / FOLDER
    target.mkdir(mode=0o700, parents=True)
    for one in files:
        one.rename(target / one.name)


def _make_patient(child: ChildSpec | None) -> ChildSpec:
    assert child is not None, "no other server was named"
    return msgspec.structs.replace(child, stop_seconds_max=STOP_SECONDS_MAX)
