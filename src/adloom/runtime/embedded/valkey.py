"""An embedded Valkey: one folder, one port on loopback, a password, every write on disk before its answer."""

import asyncio
import os
import signal
import string
from pathlib import Path

from adloom.runtime.embedded.binaries import valkey_server
from adloom.runtime.embedded.left_over import stop_leftover
from adloom.runtime.supervisor.program import Program
from adloom.runtime.valkey import VALKEY_AWAY, open_valkey

READY_SECONDS_MAX = 60.0
MEMORY_SHARE = 4  # The event log may fill a quarter of the machine's memory.
READY_POLL_SECONDS = 0.02
CONFIG_NAME = "valkey.conf"
PID_NAME = "valkey.pid"

_PLAIN = frozenset(f"{string.ascii_letters}{string.digits}/._- ")


class EmbeddedValkey:
    """A Valkey of our own; the folder is made on first use and found again later."""

    def __init__(self, folder: Path, *, port: int, password: str, appendfsync: str = "always") -> None:
        self._folder = folder
        self._port = port
        self._password = password
        self._appendfsync = appendfsync

    @property
    def url(self) -> str:
        return f"redis://:{self._password}@127.0.0.1:{self._port}/0"

    @property
    def program(self) -> Program:
        """What to run; the password is in a private file, not on the command line."""
        return Program(
            name="valkey",
            arguments=(str(valkey_server()), str(self._folder / CONFIG_NAME)),
            environment={"PATH": os.environ.get("PATH", os.defpath)},
        )

    async def prepare(self) -> None:
        """Write the configuration, and stop a server that an earlier run left on the folder."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        config = self._folder / CONFIG_NAME
        await stop_leftover(self._folder / PID_NAME, mark=str(config), stop_signal=signal.SIGTERM)
        config.touch(mode=0o600)
        config.write_text(self._config(), encoding="ascii")

    async def wait_until_ready(self) -> None:
        """Wait until the server answers, which it does after it has loaded its file."""
        async with asyncio.timeout(READY_SECONDS_MAX), open_valkey(self.url) as client:
            while True:
                try:
                    await client.ping()
                except VALKEY_AWAY:
                    await asyncio.sleep(READY_POLL_SECONDS)
                else:
                    return

    def _config(self) -> str:
        lines = {
            "bind": "127.0.0.1",
            "port": str(self._port),
            "requirepass": self._password,
            "dir": _quote(self._folder),
            "pidfile": _quote(self._folder / PID_NAME),
            "daemonize": "no",
            # The command line stays as we gave it: by its folder a server of an earlier run is known.
            "set-proc-title": "no",
            "appendonly": "yes",
            "appendfsync": self._appendfsync,
            "save": '""',
            "loglevel": "warning",
            "logfile": _quote(self._folder / "valkey.log"),
            # The ledger must never be dropped to make room: writes fail instead, and are answered 503.
            "maxmemory": str(_memory_bytes() // MEMORY_SHARE),
            "maxmemory-policy": "noeviction",
            "stop-writes-on-bgsave-error": "no",
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items())


def _quote(path: Path) -> str:
    """Quote a path for Valkey's configuration, whatever bytes it has."""
    return '"' + "".join(chr(byte) if chr(byte) in _PLAIN else f"\\x{byte:02x}" for byte in bytes(path)) + '"'


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
