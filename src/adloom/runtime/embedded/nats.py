"""An embedded NATS with JetStream: a folder, a port of loopback, a password.

Its messages are written without waiting for the disk: what a power failure takes is sent again, because nothing here
counts before PostgreSQL has it.
"""

import asyncio
import os
import signal
from pathlib import Path
from typing import Final

from adloom.runtime.embedded.binaries import (
    check_program,
    find_nats_server,
    find_unprivileged_user,
    find_unreachable_folder,
    give_ownership,
    install_nats,
    read_nats_version,
)
from adloom.runtime.embedded.left_over import stop_leftover
from adloom.runtime.http.answering import is_answering
from adloom.runtime.supervisor.program import Program

READY_SECONDS_MAX: Final = 30.0
READY_POLL_SECONDS: Final = 0.05
CONFIG_NAME: Final = "nats.conf"
PID_NAME: Final = "nats.pid"
STORE_NAME: Final = "jetstream"
USER: Final = "adloom"
# The server greets each connection; this is what a client would say next.
NATS_QUESTION: Final = b"PING\r\n"


class EmbeddedNats:
    """A NATS server of our own; the folder is made on first use and found again later."""

    def __init__(self, folder: Path, *, port: int, password: str) -> None:
        self._folder = folder
        self.port = port
        self.socket = None  # It listens on ports only.
        self._password = password
        self._user = find_unprivileged_user()
        self._server = find_nats_server(reachable_by=self._user)

    @property
    def url(self) -> str:
        return f"nats://{USER}:{self._password}@127.0.0.1:{self.port}"

    @property
    def program(self) -> Program:
        """What to run; the password is in a private file, not on the command line."""
        places = {"-c": CONFIG_NAME, "-P": PID_NAME, "-sd": STORE_NAME}
        return Program(
            name="nats",
            arguments=(
                str(self._server),
                *(word for flag, name in places.items() for word in (flag, str(self._folder / name))),
            ),
            environment={"PATH": os.environ.get("PATH", os.defpath)},
            user=self._user,
            opened_folder=find_unreachable_folder(self._folder, self._user),
        )

    async def prepare(self) -> None:
        """Write the configuration, and stop a server that an earlier run left on the folder."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        config = self._folder / CONFIG_NAME
        await stop_leftover(self._folder / PID_NAME, mark=str(self._folder), stop_signal=signal.SIGTERM)
        await asyncio.to_thread(install_nats, self._server)
        await asyncio.to_thread(check_program, self._server, read_nats_version())
        config.touch(mode=0o600)
        await asyncio.to_thread(give_ownership, self._folder, self._user)
        config.write_text(self._write_config(), encoding="ascii")

    async def wait_until_ready(self) -> None:
        async with asyncio.timeout(READY_SECONDS_MAX):
            while not await self._is_ready():  # noqa: ASYNC110 - the server sends no notice of it
                await asyncio.sleep(READY_POLL_SECONDS)

    async def _is_ready(self) -> bool:
        try:
            return await is_answering((None, self.port), NATS_QUESTION)
        except OSError:
            return False

    def _write_config(self) -> str:
        # Names and passwords of ours have letters, digits, - and _ only.
        return (
            f'listen: "127.0.0.1:{self.port}"\n'
            'server_name: "adloom"\n'
            f'authorization {{ user: "{USER}", password: "{self._password}" }}\n'
            "jetstream: enabled\n"
            "max_payload: 8MB\n"
            "logtime: true\n"
        )
