"""An installation on this machine: its data directory, the lock on it, its secrets, where it listens."""

import contextlib
import fcntl
import os
import secrets
import tempfile
from collections.abc import Generator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from adloom.core.errors import CommandError

T = TypeVar("T")

SECRETS_NAME = "secrets.json"
INSTALLATION_NAME = "installation.json"
LOCK_NAME = "lock"
MENDED_BY = {
    SECRETS_NAME: " Put it back from a backup: passwords and signatures are made with it.",
    INSTALLATION_NAME: " Remove it: the next start writes another.",
}
SECRET_BYTES = 32
# Typed by people.
PASSWORD_BYTES = 12
PRIVATE_MODE = 0o600
ROOT_DATA_DIRECTORY = Path("/var/lib/adloom")


class InstallationError(CommandError):
    """A data directory cannot be used; the message says why and what to do, in one line."""


class NoInstallationError(InstallationError):
    """Nothing was ever started on the data directory."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"There is no installation in {path}. Start one with `adloom up`, or name its --data-dir."
        )


class LockedError(InstallationError):
    """Another process runs on the data directory."""


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """What must not be known outside; made once, on the first start."""

    jwt_secret: str
    token_secret: str
    postgres_password: str
    valkey_password: str
    admin_password: str
    # Installations that are older than it get one at their next start.
    sealing_secret: str = ""
    nats_password: str = ""


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """Where an installation runs, or has run last."""

    version: str
    pid: int
    started_at: datetime
    host: str
    # Installations that are older than it had one address for everything.
    control_host: str | None = None
    delivery_port: int
    control_port: int
    worker_port: int
    # None where the server is not ours: its address is in DATABASE_URL or REDIS_URL then.
    postgres_socket_dir: str | None = None
    valkey_socket_dir: str | None = None
    # Only where they were asked for.
    postgres_port: int | None = None
    valkey_port: int | None = None
    # Only where several workers share the actors.
    nats_port: int | None = None
    metrics_ports: dict[str, int] = {}
    # The last migration that the database has; unknown for installations of earlier versions.
    schema: str | None = None


def find_default_data_directory(variables: Mapping[str, str], *, is_root: bool) -> Path:
    if is_root:
        return ROOT_DATA_DIRECTORY
    home = variables.get("XDG_DATA_HOME") or str(
        Path(variables.get("HOME") or "~").expanduser() / ".local/share"
    )
    return Path(home) / "adloom"


def make_secrets() -> Secrets:
    made = {name: secrets.token_urlsafe(SECRET_BYTES) for name in Secrets.__struct_fields__}
    return Secrets(**{**made, "admin_password": secrets.token_urlsafe(PASSWORD_BYTES)})


class DataDirectory:
    """The folder that holds everything of one installation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def secrets_path(self) -> Path:
        return self.path / SECRETS_NAME

    def make(self) -> None:
        """Create the folder if it is missing.

        Other users may traverse it, because PostgreSQL does not run as root; every file in it is private.
        """
        try:
            if not self.path.is_dir():
                self.path.mkdir(parents=True)
                self.path.chmod(0o755)
        except OSError as error:
            raise InstallationError(
                f"Cannot make the data directory {self.path}: {error.strerror}. Choose another with --data-dir."
            ) from error
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise InstallationError(
                f"This user may not write to the data directory {self.path}. Choose another with --data-dir."
            )

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Lock the folder; the kernel releases it when we die in any way."""
        path = self.path / LOCK_NAME
        with _explain_write_errors(path):
            lock = _acquire_lock(path)
        try:
            yield
        finally:
            # While we hold it: a process that waits for a lock on a removed file tries again, see `_acquire_lock`.
            path.unlink(missing_ok=True)
            os.close(lock)

    def read_holder_pid(self) -> int | None:
        try:
            lock = os.open(self.path / LOCK_NAME, os.O_RDWR)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read_pid(lock)
        finally:
            os.close(lock)
        return None

    def read_secrets(self) -> Secrets | None:
        """Return None if the installation was never started."""
        return self.read(SECRETS_NAME, Secrets)

    def read_installation(self) -> Installation | None:
        """Return where the installation runs or ran last; None if it was never started."""
        return self.read(INSTALLATION_NAME, Installation)

    def require_installation(self) -> Installation:
        found = self.read_installation()
        if found is None:
            raise NoInstallationError(self.path)
        return found

    def write_secrets(self, value: Secrets) -> None:
        self.write(SECRETS_NAME, value)

    def write_installation(self, value: Installation) -> None:
        self.write(INSTALLATION_NAME, value)

    def delete(self, name: str) -> None:
        path = self.path / name
        with _explain_write_errors(path):
            path.unlink(missing_ok=True)

    def read(self, name: str, kind: type[T]) -> T | None:
        """Return None if there is no such file."""
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise InstallationError(f"Cannot read {path}: {error.strerror}.") from error
        except msgspec.MsgspecError as error:
            mend = MENDED_BY.get(name, "")
            raise InstallationError(f"{path} is damaged: {error}.{mend}") from error

    def write(self, name: str, value: msgspec.Struct, *, mode: int = PRIVATE_MODE) -> None:
        """Write a file whole or not at all."""
        path = self.path / name
        with _explain_write_errors(path):
            # It gets its name when it is whole; a temporary file is its owner's alone from the start.
            descriptor, unfinished = tempfile.mkstemp(prefix=f"{name}.", dir=self.path)
            try:
                os.fchmod(descriptor, mode)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(msgspec.json.format(msgspec.json.encode(value)) + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                Path(unfinished).replace(path)
            except OSError:
                Path(unfinished).unlink(missing_ok=True)
                raise


def find_jwt_secret(variables: Mapping[str, str], directory: DataDirectory) -> str:
    if given := variables.get("JWT_SECRET"):
        return given
    secrets = directory.read_secrets()
    if secrets is None:
        raise NoInstallationError(directory.path)
    return secrets.jwt_secret


@contextlib.contextmanager
def _explain_write_errors(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise InstallationError(f"Cannot write {path}: {error.strerror}.") from error


def _acquire_lock(path: Path) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _read_pid(lock)
            os.close(lock)
            raise LockedError(
                f"{path.parent} is in use by another adloom, process {pid}. "
                "Stop that one first, or choose another folder with --data-dir."
            ) from None
        if _is_same_file(lock, path):
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
            return lock
        os.close(lock)


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _read_pid(lock: int) -> int | None:
    written = os.pread(lock, 20, 0)
    return int(written) if written.isdigit() else None
