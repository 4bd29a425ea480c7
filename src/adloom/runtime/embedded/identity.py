"""The user that the embedded servers run as: PostgreSQL refuses to run as root."""

import os
import pwd
from pathlib import Path

UNPRIVILEGED_NAME = "nobody"
# Where Linux shows what a process holds open; other systems have no such place.
OPEN_FOLDERS = Path("/proc/self/fd")


class UnreachableError(Exception):
    """The unprivileged user cannot get to a folder that it needs."""


def find_unprivileged_user() -> str | None:
    """Return the user that the servers run as; None is the current one."""
    return UNPRIVILEGED_NAME if os.geteuid() == 0 else None


def give_ownership(path: Path, user: str | None) -> None:
    if user is None:
        return
    entry = pwd.getpwnam(user)
    for place in (path, *path.rglob("*")):
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
            f"PostgreSQL cannot run as root, and the user {user!r} that it runs as instead cannot reach {path}. "
            "Choose a data directory outside it (--data-dir /var/lib/adloom), or run adloom as an ordinary user."
        )
    return path
