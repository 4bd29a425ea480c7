"""The server configuration of `deploy/nats`: TLS, passwords from files, and rights by role."""

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from pathlib import Path

import msgspec
import pytest

from adloom.core.errors import UnavailableError
from adloom.core.ids import SystemIds
from adloom.core.setting import SecretValueError
from adloom.runtime.actors.nats.connection import NatsConnection
from adloom.runtime.actors.nats.link import NatsLink
from adloom.runtime.embedded.binaries import find_nats_server
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from adloom.runtime.process.roles import parse_address
from tests.docs.pages import ROOT
from tests.support.actors import TALLY, Add, Count, a_tally
from tests.support.certificates import TlsFiles, make_tls_files
from tests.support.nats import SharedWorker

pytestmark = pytest.mark.server


class SecuredNats(msgspec.Struct, frozen=True):
    """A running server of this configuration."""

    folder: Path
    port: int
    files: TlsFiles
    process: subprocess.Popen[bytes]

    def name(self, user: str, *, ca: Path | None = None) -> str:
        query = f"ca={ca or self.files.authority}&password_file={self.folder / user}"
        return f"tls://{user}@127.0.0.1:{self.port}?{query}"

    def set_passwords(self, word: str) -> None:
        lines = [f'{user}_password: "{user} {word}"\n' for user in ("entity", "singleton")]
        (self.folder / "secrets.conf").write_text("".join(lines), encoding="ascii")
        for user in ("entity", "singleton"):
            (self.folder / user).write_text(f"{user} {word}\n", encoding="ascii")


@contextlib.contextmanager
def running_secured(*, is_mutual: bool = False) -> Generator[SecuredNats]:
    with tempfile.TemporaryDirectory(prefix="adloom-tests-") as name:
        folder, port = Path(name), find_port()
        files = make_tls_files(folder / "tls")
        config = folder / "nats.conf"
        text = (ROOT / "deploy" / "nats" / "nats.conf").read_text(encoding="utf-8")
        asked = f'verify: true\n  ca_file: "{files.authority}"\n' if is_mutual else ""
        config.write_text(text.replace("  timeout: 3\n", f"  timeout: 3\n  {asked}"), encoding="utf-8")
        variables = {
            "NATS_HOST": "127.0.0.1",
            "NATS_PORT": str(port),
            "NATS_NAME": "secured",
            "NATS_STORE": str(folder / "store"),
            "NATS_CERT": str(files.certificate),
            "NATS_KEY": str(files.key),
        }
        server = SecuredNats(folder, port, files, subprocess.Popen(["true"]))  # noqa: S607 - replaced below
        server.process.wait()
        server.set_passwords("first")
        process = subprocess.Popen(
            [find_nats_server(reachable_by=None), "-c", config],
            env={**os.environ, **variables},
            stderr=subprocess.DEVNULL,
        )
        try:
            yield msgspec.structs.replace(server, process=process)
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture
async def secured() -> AsyncIterator[SecuredNats]:
    with running_secured() as server:
        yield server


@contextlib.asynccontextmanager
async def connected(url: str, *, seconds: float = 60.0) -> AsyncGenerator[NatsConnection]:
    connection = NatsConnection(url, name="test")
    try:
        with contextlib.suppress(TimeoutError):  # It tries for ever.
            async with asyncio.timeout(seconds):
                await connection.open(asyncio.Event())
        yield connection
    finally:
        await connection.close()


async def check_refused(url: str, subject: str) -> None:
    async with connected(url) as connection:
        assert connection.is_connected
        with pytest.raises(UnavailableError):
            await connection.request(subject, b"")


async def test_roles_do_their_work_over_tls_and_nothing_else_and_passwords_change_meanwhile(
    secured: SecuredNats, tables: Pool
) -> None:
    worker = SharedWorker(secured.name("entity"), tables)
    sender = NatsLink(secured.name("singleton"), [TALLY], SystemIds(), name="sender")
    stop = asyncio.Event()

    async def ask(amount: int) -> int:
        ends_at = asyncio.get_running_loop().time() + 60
        while True:
            try:
                answer: Count = await sender.sender.ask(a_tally("k"), Add(amount=amount), seconds_max=10)
            except UnavailableError:  # It is not connected yet, or again.
                assert asyncio.get_running_loop().time() < ends_at
                await asyncio.sleep(0.05)
            else:
                return answer.count

    async with worker.running(), asyncio.TaskGroup() as group:
        group.create_task(sender.run(stop))
        first = await ask(2)

        secured.set_passwords("second")
        secured.process.send_signal(signal.SIGHUP)
        await asyncio.sleep(0.5)
        second = await ask(3)

        async with asyncio.TaskGroup() as refusals:
            for user, subject in (
                ("singleton", "$JS.API.CONSUMER.MSG.NEXT.BRAIN.shard-00"),
                ("singleton", "$JS.API.STREAM.INFO.BRAIN"),
                ("entity", "$JS.API.STREAM.DELETE.BRAIN"),
                ("entity", "$JS.API.STREAM.PURGE.BRAIN"),
            ):
                refusals.create_task(check_refused(secured.name(user), subject))
        third = await ask(4)
        stop.set()

    assert (first, second, third) == (2, 5, 9)


async def test_a_stranger_gets_no_connection(secured: SecuredNats, tmp_path: Path) -> None:
    stranger = make_tls_files(tmp_path / "stranger", name="somebody else")
    async with connected(secured.name("entity")) as connection:
        assert connection.is_connected

    plain = f"nats://127.0.0.1:{secured.port}"
    for url in (secured.name("entity", ca=stranger.authority), plain):
        async with connected(url, seconds=1.0) as connection:
            assert not connection.is_connected


async def test_a_server_that_asks_for_a_certificate_gets_it() -> None:
    with running_secured(is_mutual=True) as server:
        ours = f"{server.name('entity')}&cert={server.files.certificate}&key={server.files.key}"

        async with connected(ours) as connection:
            assert connection.is_connected
        async with connected(server.name("entity"), seconds=1.0) as connection:
            assert not connection.is_connected


def test_an_address_says_what_is_wrong_with_it() -> None:
    plain = parse_address("nats://a:b@one:4222, nats://a:b@two:4222")
    assert plain.urls == ("nats://a:b@one:4222", "nats://a:b@two:4222")
    assert (plain.user, plain.read_password, plain.tls) == (None, None, None)
    with pytest.raises(SecretValueError, match="cafile behind the question mark"):
        parse_address("tls://one:4222?cafile=/a")
    with pytest.raises(SecretValueError, match="no user"):
        parse_address("tls://one:4222?password_file=/a")
