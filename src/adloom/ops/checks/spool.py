"""Whether events wait in the spool, and whether a file of it could not be read."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from adloom.events.log.spool.inspect import SpoolFileInfo, list_spool_files
from adloom.ops.checks.finding import Finding, fail, ok, warn

DRAINED_AFTER = timedelta(minutes=1)  # Delivery processes look for files of dead ones twice a minute.


def check_spool(folder: Path, *, has_ledger: bool, now: datetime) -> Finding:
    try:
        files = list_spool_files(folder)
    except OSError as error:
        return fail("Spool", f"{folder}: {error.strerror}", "run doctor as the user who runs delivery")
    return judge_spool(files, has_ledger=has_ledger, now=now)


def judge_spool(files: Sequence[SpoolFileInfo], *, has_ledger: bool, now: datetime) -> Finding:
    damaged = [file.name for file in files if file.is_damaged]
    if damaged:
        return fail(
            "Spool",
            f"could not be read whole: {', '.join(damaged)}",
            "all that could be read was drained; look at the disk, then remove these files",
        )
    waiting = sum(file.size_bytes for file in files)
    detail = f"{waiting:,} bytes in {len(files)} files"
    if not files:
        return ok("Spool", "nothing waits for the ledger")
    if not has_ledger:
        return warn("Spool", f"{detail} wait for Valkey", "repair Valkey; delivery drains them then")
    if now - max(file.written_at for file in files) > DRAINED_AFTER:
        return fail(
            "Spool",
            f"{detail} are not drained",
            "start delivery on this machine with this spool; if it runs, see what it logs",
        )
    return warn("Spool", f"{detail} are being drained", "look again in a minute")
