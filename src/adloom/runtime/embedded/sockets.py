"""The unix sockets of the embedded servers: in a folder that only the user of the servers can open."""

import contextlib
import os
import pwd
import re
import tempfile
from pathlib import Path

import msgspec

from adloom.runtime.embedded.binaries import can_reach

FOLDER_NAME = "sockets"
# The name of PostgreSQL's socket ends with a port, though nothing listens on that.
POSTGRES_PORT = 5432
LONGEST_NAME = ".s.PGSQL.65535"
# Linux allows 107, macOS 103.
PATH_BYTES_MAX = 103
PRIVATE_MODE = 0o700
# In a list of folders, and in an address, other characters have a meaning of their own.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+", re.ASCII)
_TEMPORARY = Path("/tmp")  # noqa: S108 - the folder in it gets a name of its own, and is its owner's alone


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where an embedded server listens: on a unix socket in a folder, on a port of loopback, or on both."""

    socket_dir: str | None = None
    port: int | None = None


def is_usable(folder: Path) -> bool:
    """Whether a socket in a folder has a path that is short and plain enough."""
    path = str(folder / LONGEST_NAME)
    return len(path) <= PATH_BYTES_MAX and _PLAIN_PATH.fullmatch(path) is not None


def make_socket_folder(data_directory: Path, user: str | None, *, last: Path | None) -> Path:
    """Make the folder in the data directory; where that will not do, a short one among temporary files.

    Will not do: a path that is too long, or that the user of the servers cannot reach.
    """
    folder = data_directory / FOLDER_NAME
    if is_usable(folder) and can_reach(data_directory, user):
        folder.mkdir(mode=PRIVATE_MODE, parents=True, exist_ok=True)
    elif last is not None and last != folder and _is_private(last, user):
        folder = last
    else:
        folder = Path(tempfile.mkdtemp(prefix="adloom-", dir=_TEMPORARY))
    folder.chmod(PRIVATE_MODE)
    if user is not None:
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    return folder


def remove_socket_folder(place: Listening) -> None:
    """Remove the folder when the servers have stopped; it stays if one of them has left its socket."""
    if place.socket_dir is not None:
        with contextlib.suppress(OSError):
            Path(place.socket_dir).rmdir()


def _is_private(folder: Path, user: str | None) -> bool:
    """Whether a folder of an earlier run is still there, and nobody has put another in its place."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    owner = os.geteuid() if user is None else pwd.getpwnam(user).pw_uid
    return folder.is_dir() and not folder.is_symlink() and status.st_uid == owner and is_usable(folder)
