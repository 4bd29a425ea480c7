"""The machine: interpreter, folders, disk, ports."""

import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable, Mapping

from adloom.ops.checks.finding import Finding, fail, grade, report_ok, warn
from adloom.runtime.embedded.binaries import UnreachableError, find_unprivileged_user, find_unreachable_folder
from adloom.runtime.installation import PRIVATE_MODE, DataDirectory

PYTHON_MIN = (3, 11)
FREE_BYTES_MIN = 500_000_000
FREE_BYTES_GOOD = 5_000_000_000


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    found = f"{platform.python_version()} at {sys.executable}"
    if version < PYTHON_MIN:
        return fail("Python", found, "install Python 3.11 or newer: `uv python install 3.11`")
    return report_ok("Python", found)


def check_running(directory: DataDirectory) -> Finding:
    pid = directory.read_holder_pid()
    if pid is None:
        return warn("Installation", f"nothing runs on {directory.path}", "start it with `adloom up`")
    return report_ok("Installation", f"{directory.path}, process {pid}")


def check_folder(directory: DataDirectory) -> Finding:
    """Check that we, and the user that PostgreSQL runs as, can use the data directory."""
    path = directory.path
    if not path.is_dir():
        return warn(
            "Data directory", f"{path} does not exist", "`adloom up` makes it, or name it by --data-dir"
        )
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return fail("Data directory", f"{path} is not ours to write", f"run as its owner, or `chown` {path}")
    try:
        find_unreachable_folder(path, find_unprivileged_user())
    except UnreachableError as error:
        return fail("Data directory", str(error), f"open the folders above it: `chmod o+x` down to {path}")
    return report_ok("Data directory", str(path))


def check_secrets(directory: DataDirectory) -> Finding:
    path = directory.secrets_path
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return warn("Secrets", f"there is no {path}", "the first `adloom up` makes it")
    if mode != PRIVATE_MODE:
        return fail("Secrets", f"{path} has mode {mode:04o}", f"`chmod 600 {path}`")
    return report_ok("Secrets", f"{path}, mode {mode:04o}")


def check_disk(directory: DataDirectory) -> Finding:
    folder = next(place for place in (directory.path, *directory.path.parents) if place.exists())
    return judge_space(shutil.disk_usage(folder).free)


def judge_space(free_bytes: int, *, of: str = "") -> Finding:
    """Judge the room on a disk, of a process if it is named."""
    detail = f"{free_bytes / 1e9:.1f} GB free{of and f' where {of} keeps its files'}"
    remedy = "make room, or move the data directory to a larger disk"
    is_bad = free_bytes < FREE_BYTES_MIN
    if is_bad:
        remedy += ": PostgreSQL and Valkey stop accepting writes on a full disk"
    return grade("Disk", detail, remedy, is_bad=is_bad, is_good=free_bytes >= FREE_BYTES_GOOD)


def check_ports(ports: Mapping[str, int], *, is_running: bool, is_taken: Callable[[int], bool]) -> Finding:
    """Check that the ports are free for a start, or taken by the running installation itself."""
    words = _join_ports(ports)
    if is_running:
        silent = {name: port for name, port in ports.items() if not is_taken(port)}
        if silent:
            return fail(
                "Ports",
                f"nothing listens on {_join_ports(silent)}",
                "look at the log of `adloom up`, or start it again",
            )
        return report_ok("Ports", words)
    busy = {name: port for name, port in ports.items() if is_taken(port)}
    if busy:
        flags = " ".join(f"--{name}-port" for name in busy)
        return fail(
            "Ports", f"in use by another program: {_join_ports(busy)}", f"stop it, or choose others: {flags}"
        )
    return report_ok("Ports", f"free: {words}")


def _join_ports(ports: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {port}" for name, port in ports.items())
