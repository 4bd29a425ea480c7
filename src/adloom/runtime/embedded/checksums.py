"""SHA-256 of the servers' programs: they hold all money and all events, and come from young packages.

A program of a version that is pinned must be the one that was looked at, on each platform that has a wheel. Of another
version nothing is known here: then a warning is logged. `just pin` shows when the pins, and so these, have to change.
"""

from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import structlog

from adloom.runtime.installation import InstallationError

# By program and version of its package: Linux (x86-64, ARM) and macOS (x86-64, ARM).
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
