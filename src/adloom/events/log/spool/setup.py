"""The spool of a delivery process by its settings."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from adloom.core.ids import SystemIds
from adloom.events.log.append import EventLog
from adloom.events.log.spool.disk import LocalDisk, make_folder
from adloom.events.log.spool.drain import DiskSpool, SpoolLimits
from adloom.runtime.installation import DataDirectory
from adloom.runtime.settings import DeliverySettings, SettingsError

FOLDER_NAME = "spool"


def locate_spool(variables: Mapping[str, str], directory: DataDirectory) -> Path:
    """Return the folder in which all processes of an installation keep their spools."""
    return Path(variables.get("ADLOOM_SPOOL_DIR") or directory.path / FOLDER_NAME).absolute()


def make_spool_folder(settings: DeliverySettings) -> None:
    """Make the folder of the spool; SettingsError where that cannot be."""
    if not settings.spool_bytes_max:
        return
    folder = settings.spool_directory
    try:
        make_folder(folder)
    except OSError as error:
        raise SettingsError(
            f"ADLOOM_SPOOL_DIR is '{folder}': expected a directory that this user can make and write "
            f"({error.strerror}). ADLOOM_SPOOL_BYTES_MAX=0 does without."
        ) from error


@asynccontextmanager
async def open_spool(settings: DeliverySettings, event_log: EventLog) -> AsyncGenerator[DiskSpool | None]:
    """Open the spool of a delivery process, unless its settings say none."""
    if not settings.spool_bytes_max:
        yield None
        return
    make_spool_folder(settings)
    disk = LocalDisk(settings.spool_directory)
    limits = SpoolLimits(bytes_max=settings.spool_bytes_max)
    try:
        async with DiskSpool(
            disk, event_log, process=settings.telemetry.process, ids=SystemIds(), limits=limits
        ) as spool:
            yield spool
    finally:
        disk.close()
