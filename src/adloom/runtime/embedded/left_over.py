"""Servers that an earlier run left on a folder: ended before a new one starts there."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

STOP_SECONDS_MAX = 5.0
POLL_SECONDS = 0.02


async def stop_leftover(pid_file: Path, *, mark: str, stop_signal: signal.Signals) -> None:
    """Stop the server that a PID file names, if it still runs, and remove the file.

    The PID may be another program's by now, so the process must have the mark, the server's own folder,
    on its command line.
    """
    pid = _read_pid(pid_file)
    if pid is not None and _is_marked(pid, mark):
        await _end(pid, mark, stop_signal)
    _forget(pid_file)


async def _end(pid: int, mark: str, stop_signal: signal.Signals) -> None:
    for number in (stop_signal, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS_MAX):
                while _is_marked(pid, mark):  # noqa: ASYNC110 - not our child: there is no event to wait for
                    await asyncio.sleep(POLL_SECONDS)
                return


def _read_pid(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text(encoding="utf-8").split()[0])
    except (FileNotFoundError, ValueError, IndexError):
        return None


def _forget(pid_file: Path) -> None:
    pid_file.unlink(missing_ok=True)


def _is_marked(pid: int, mark: str) -> bool:
    try:
        # A process that ended but was not waited for has an empty command line.
        return mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
