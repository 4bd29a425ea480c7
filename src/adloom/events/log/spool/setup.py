"""The spool of a delivery process: its folder, its settings, and `adloom ledger spool`."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from adloom.core.ids import SystemIds
from adloom.events.log.append import EventLog
from adloom.events.log.spool.disk import LocalDisk, made_folder
from adloom.events.log.spool.drain import DiskSpool, SpoolLimits
from adloom.events.log.spool.inspect import SpoolContents, SpoolFileInfo, count_events, list_spool_files
from adloom.runtime.installation import DataDirectory
from adloom.runtime.settings import DeliverySettings, SettingsError

FOLDER_NAME = "spool"


def locate_spool(variables: Mapping[str, str], directory: DataDirectory) -> Path:
    """Tell where the processes of an installation keep their spools."""
    return Path(variables.get("ADLOOM_SPOOL_DIR") or directory.path / FOLDER_NAME).absolute()


def make_spool_folder(settings: DeliverySettings) -> None:
    """Make the folder of the spool, or say why that cannot be."""
    if not settings.spool_bytes_max:
        return
    folder = settings.spool_directory
    try:
        made_folder(folder)
    except OSError as error:
        raise SettingsError(
            f"ADLOOM_SPOOL_DIR is '{folder}': expected a directory that this user can make and write "
            f"({error.strerror}). ADLOOM_SPOOL_BYTES_MAX=0 does without."
        ) from error


@asynccontextmanager
async def open_spool(settings: DeliverySettings, ledger: EventLog) -> AsyncGenerator[DiskSpool | None]:
    """Open the spool of a delivery process, if it is to have one."""
    if not settings.spool_bytes_max:
        yield None
        return
    make_spool_folder(settings)
    disk = LocalDisk(settings.spool_directory)
    limits = SpoolLimits(bytes_max=settings.spool_bytes_max)
    try:
        async with DiskSpool(
            disk, ledger, process=settings.telemetry.process, ids=SystemIds(), limits=limits
        ) as spool:
            yield spool
    finally:
        disk.close()


def describe_spool(folder: Path) -> list[str]:
    """Word what is in a spool, a line for each file."""
    files = list_spool_files(folder)
    contents = [count_events(folder / file.name) for file in files]
    waiting = [(file, has) for file, has in zip(files, contents, strict=True) if not file.is_damaged]
    events = sum(has.events for _, has in waiting)
    size = sum(file.size_bytes for file, _ in waiting)
    return [
        f"{folder}: {_counted(events, 'event')} in {_counted(len(waiting), 'file')}, {size:,} bytes.",
        *(_line(file, has) for file, has in zip(files, contents, strict=True)),
    ]


def _line(file: SpoolFileInfo, has: SpoolContents) -> str:
    oldest = "" if has.oldest_at is None else f", the oldest of {has.oldest_at:%Y-%m-%d %H:%M:%S} UTC"
    held = "held by a living process" if file.is_held else "held by nobody"
    state = "damaged; all that could be read was drained" if file.is_damaged else held
    return f"{file.name}: {_counted(has.events, 'event')}, {file.size_bytes:,} bytes{oldest}; {state}."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
