"""An embedded Valkey: a folder, a unix socket or a port, a password, every write on disk before its answer."""

import asyncio
import contextlib
import os
import signal
import string
import zlib
from pathlib import Path

from adloom.runtime.embedded.binaries import (
    check_program,
    find_unprivileged_user,
    find_unreachable_folder,
    find_valkey_server,
    give_ownership,
    install_valkey,
    read_valkey_version,
)
from adloom.runtime.embedded.left_over import stop_leftover
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.http.answering import is_answering
from adloom.runtime.supervisor.program import Program

READY_SECONDS_MAX = 60.0
MEMORY_SHARE = 4  # The event log may fill a quarter of the memory.
CONTROL_GROUPS = Path("/sys/fs/cgroup")
MEMORY_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  # Of their versions 2 and 1.
READY_POLL_SECONDS = 0.02
READY_ANSWER = b"+OK\r\n+PONG\r\n"
CONFIG_NAME = "valkey.conf"
PID_NAME = "valkey.pid"
LOG_NAME = "valkey.log"
SOCKET_NAME = "valkey.sock"
# Free blocks that glibc keeps at hand, of each size up to a kilobyte; 7 by default. An event takes a tenth less CPU;
# a batch of topics keeps three for each of its 500 messages.
MALLOC = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=2000"}
# Of the dangerous commands only the one that tells how much memory is used.
RIGHTS = "+@all -@admin -@dangerous +info"

_PLAIN = frozenset(f"{string.ascii_letters}{string.digits}/._- ")


class EmbeddedValkey:
    """A Valkey of our own; the folder is made on first use and found again later."""

    def __init__(  # noqa: PLR0913 - settings, each with its default
        self,
        folder: Path,
        *,
        listening: Listening,
        password: str,
        appendfsync: str = "always",
        memory_bytes_max: int | None = None,
        has_all_rights: bool = False,
    ) -> None:
        self._folder = folder
        self.port = listening.port
        self.socket = None if listening.socket_dir is None else Path(listening.socket_dir) / SOCKET_NAME
        self._password = password
        self._appendfsync = appendfsync
        self._rights = "+@all" if has_all_rights else RIGHTS
        self._user = find_unprivileged_user()
        self._server = find_valkey_server(reachable_by=self._user)
        # A server that we find running is recognised by this: its folder may be known to it by another path.
        self._mark = f"adloom-{zlib.crc32(bytes(folder)):08x}"
        self._places = {"dir": folder, "pidfile": folder / PID_NAME, "logfile": folder / LOG_NAME}
        self._memory_bytes_max = memory_bytes_max or find_memory_bytes() // MEMORY_SHARE

    @property
    def url(self) -> str:
        if self.socket is not None:
            return f"unix://:{self._password}@{self.socket}?db=0"
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    @property
    def program(self) -> Program:
        """What to run; the password is in a private file, not on the command line."""
        opened_folder = find_unreachable_folder(self._folder, self._user)
        arguments = [str(self._server), str(self._folder / CONFIG_NAME), "--proc-title-template", self._mark]
        if opened_folder is not None:
            # On the command line they are found through the folder that is opened.
            arguments += [word for name, path in self._places.items() for word in (f"--{name}", str(path))]
        return Program(
            name="valkey",
            arguments=tuple(arguments),
            environment={"PATH": os.environ.get("PATH", os.defpath), **MALLOC},
            user=self._user,
            opened_folder=opened_folder,
        )

    async def prepare(self) -> None:
        """Write the configuration, and stop a server that an earlier run left on the folder."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        config = self._folder / CONFIG_NAME
        await stop_leftover(self._folder / PID_NAME, mark=self._mark, stop_signal=signal.SIGTERM)
        await asyncio.to_thread(install_valkey, self._server)
        await asyncio.to_thread(check_program, self._server, read_valkey_version())
        config.touch(mode=0o600)
        # Before it is decided how the user finds the folder. A restored folder is root's.
        await asyncio.to_thread(give_ownership, self._folder, self._user)
        config.write_text(self._write_config(), encoding="ascii")

    async def wait_until_ready(self) -> None:
        """Wait until the server answers, which it does after it has loaded its file."""
        question = f"AUTH {self._password}\r\nPING\r\n".encode()
        async with asyncio.timeout(READY_SECONDS_MAX):
            while True:
                # Without the driver, which has 10 MB: the supervisor asks nothing else.
                with contextlib.suppress(OSError, EOFError):
                    if await is_answering((self.socket, self.port), question, expected=READY_ANSWER):
                        return
                await asyncio.sleep(READY_POLL_SECONDS)

    def _write_config(self) -> str:
        lines = {
            "bind": "127.0.0.1",
            # 0 is no port at all.
            "port": str(self.port or 0),
            # Whoever has the password can do what the product does, and cannot lead the server elsewhere.
            "user": f"default on >{self._password} ~* &* {self._rights}",
            "enable-protected-configs": "no",
            "enable-module-command": "no",
            "enable-debug-command": "no",
            "daemonize": "no",
            # The command line stays as we gave it: by its folder a server of an earlier run is known.
            "set-proc-title": "no",
            "appendonly": "yes",
            "appendfsync": self._appendfsync,
            "save": '""',
            "loglevel": "warning",
            # How often it looks after itself. Waits of clients may end so much later, and have seconds to spare.
            "hz": "2",
            # The ledger must never be dropped to make room: writes fail instead, and are answered 503.
            "maxmemory": str(self._memory_bytes_max),
            "maxmemory-policy": "noeviction",
            "stop-writes-on-bgsave-error": "no",
        }
        if self.socket is not None:
            lines |= {"unixsocket": str(self.socket), "unixsocketperm": "700"}
        if find_unreachable_folder(self._folder, self._user) is None:
            lines |= {name: _quote(path) for name, path in self._places.items()}
        return "".join(f"{name} {value}\n" for name, value in lines.items())


def _quote(path: Path) -> str:
    """Quote a path for Valkey's configuration, whatever bytes it has."""
    return '"' + "".join(chr(byte) if chr(byte) in _PLAIN else f"\\x{byte:02x}" for byte in bytes(path)) + '"'


def find_memory_bytes(control_groups: Path = CONTROL_GROUPS) -> int:
    """Return the memory of the machine, or of the container that we are in if that has less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in MEMORY_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # The other version's, or the word "max".
            found.append(int((control_groups / name).read_text()))
    return min(found)
