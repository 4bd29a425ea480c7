"""`adloom backup` and `adloom restore`."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from adloom.cli.options import DataDir, resolve_data_directory

ArchiveFile = Annotated[Path, typer.Argument(help="The archive.", show_default=False)]


def backup(file: ArchiveFile, *, data_dir: DataDir = None) -> None:
    """Back up an installation, running or stopped, to one file; it has the secrets, so keep it private."""
    from adloom.app.progress import show_progress
    from adloom.core.clock import SystemClock
    from adloom.events.log.spool.drain import locate_spool
    from adloom.ops.backup.make import make_backup
    from adloom.runtime.files.place import FOLDER_NAME, find_folder, write_folder_url

    _log_problems_only()
    directory = resolve_data_directory(data_dir)
    spool = locate_spool(os.environ, directory)
    assets = find_folder(
        os.environ.get("ADLOOM_ASSETS_URL") or write_folder_url(directory.path / FOLDER_NAME)
    )
    with show_progress("Backing up") as work:
        manifest = asyncio.run(
            make_backup(directory, spool, file.absolute(), work, now=SystemClock().now(), assets=assets)
        )
    if assets is None:
        typer.echo("Uploaded files are in a bucket (ADLOOM_ASSETS_URL): back it up by its own means.")
    size = file.stat().st_size / 1e6
    typer.echo(
        f"{file}: {size:,.1f} MB, schema {manifest.revision}, as of {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC"
    )


def restore(
    file: ArchiveFile,
    *,
    data_dir: DataDir = None,
    replace: Annotated[bool, typer.Option(help="Put aside an installation that is there.")] = False,
) -> None:
    """Restore an installation from a backup; nothing may run on the data directory."""
    from adloom.app.progress import show_progress
    from adloom.core.clock import SystemClock
    from adloom.ops.backup.restore import restore_backup

    _log_problems_only()
    directory = resolve_data_directory(data_dir)
    with show_progress("Restoring") as work:
        restored = asyncio.run(
            restore_backup(directory, file.absolute(), work, now=SystemClock().now(), is_replacing=replace)
        )
    typer.echo(
        f"{directory.path} is as of {restored.manifest.made_at:%Y-%m-%d %H:%M:%S} UTC; "
        f"its event log has {restored.entries:,} entries. Start it with `adloom up`."
    )
    if restored.replaced is not None:
        typer.echo(f"What was there is in {restored.replaced}; remove it when you no longer need it.")


def _log_problems_only() -> None:
    from adloom.runtime.settings import Telemetry
    from adloom.runtime.telemetry.logs import configure_logs

    configure_logs(Telemetry(process="backup", log_level="warning"))
