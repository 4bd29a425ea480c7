"""A standby of PostgreSQL and a replica of Valkey take over under load: what was acknowledged is there, once."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from adloom.events.log.append import EventAppender
from adloom.events.log.stream import ValkeyEventLog
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.failover.primary import list_servers
from adloom.runtime.failover.sentinel import SentinelValkey
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import POSTGRES_AWAY, open_pool
from adloom.runtime.schema import describe_database
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, make_client, open_valkey
from bench.drills.cluster import Server
from bench.drills.stand_ins import (
    SERVICE,
    PairedValkey,
    SentinelServer,
    copy_standby,
    make_synchronous,
    name_both,
    name_sentinels,
)
from tests.support.certificates import make_tls_files, speaking_tls, taking_both
from tests.support.eventually import becomes
from tests.support.product import an_open_folder

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

PASSWORD = "a-password-of-tests"


def test_a_url_may_name_several_servers() -> None:
    url = "postgresql://me:secret@one:1,two/adloom?sslmode=require"

    assert list_servers(url) == [
        "postgresql://me:secret@one:1/adloom?sslmode=require",
        "postgresql://me:secret@two/adloom?sslmode=require",
    ]
    assert list_servers("postgresql://me:secret@/adloom?host=/run") == [
        "postgresql://me:secret@/adloom?host=/run"
    ]
    assert describe_database(url) == "The database 'adloom' at one:1, two:5432"


async def test_the_name_of_the_primary_is_in_the_url_of_sentinels() -> None:
    client = make_client("redis+sentinel://:a%40b@one:1,two/main?db=2&replicas=3")

    assert isinstance(client, SentinelValkey)
    assert client.replicas == 3
    assert client.connection_pool.service_name == "main"  # type: ignore[attr-defined]
    assert client.connection_pool.connection_kwargs["password"] == "a@b"
    addresses = [one.connection_pool.connection_kwargs for one in client.sentinels.sentinels]
    assert [(one["host"], one["port"]) for one in addresses] == [("one", 1), ("two", 26379)]
    await client.aclose()


@contextlib.asynccontextmanager
async def started(*servers: Server) -> AsyncGenerator[None]:
    async with contextlib.AsyncExitStack() as stack:
        for one in servers:
            await one.start()
            stack.push_async_callback(one.end, signal.SIGTERM)
        yield


async def test_a_promoted_standby_has_every_commit_once() -> None:
    with an_open_folder() as folder, socket.create_server(("127.0.0.1", 0)) as silent:
        primary = EmbeddedPostgres(folder / "one", listening=Listening(port=find_port()), password=PASSWORD)
        first = Server(primary, folder / "one.log")
        async with started(first):
            standby = await copy_standby(primary, folder / "two", password=PASSWORD)
            async with started(Server(standby, folder / "two.log")):
                await make_synchronous(primary)
                # One that accepts connections and says nothing holds nobody up for long.
                both = name_both(primary, standby)
                url = both.replace("@", f"@127.0.0.1:{silent.getsockname()[1]},", 1)
                kept: list[int] = []
                async with open_pool(url, size_max=4) as pool:
                    await pool.execute("CREATE TABLE kept (number integer PRIMARY KEY)")

                    async def write(numbers: range) -> None:
                        for number in numbers:
                            while True:
                                try:
                                    await pool.execute("INSERT INTO kept VALUES ($1)", number)
                                except asyncpg.UniqueViolationError:
                                    pass  # The answer was lost.
                                except POSTGRES_AWAY:
                                    await asyncio.sleep(0.1)
                                    continue
                                kept.append(number)
                                break

                    async def fail_over() -> None:
                        while len(kept) < 200:  # noqa: ASYNC110 - the writers send no notice
                            await asyncio.sleep(0.01)
                        await first.end(signal.SIGQUIT)
                        await standby.promote()

                    async with asyncio.TaskGroup() as group:
                        group.create_task(fail_over())
                        for writer in range(4):
                            group.create_task(write(range(writer * 200, writer * 200 + 200)))
                    rows = await pool.fetch("SELECT number FROM kept ORDER BY 1")
                    is_standby = await pool.fetchval("SELECT pg_is_in_recovery()")

    assert [row[0] for row in rows] == list(range(800)) == sorted(kept)
    assert not is_standby


async def test_a_promoted_replica_has_every_accepted_event() -> None:
    with an_open_folder() as folder:
        primary = PairedValkey(folder / "one", password=PASSWORD)
        replica = PairedValkey(folder / "two", password=PASSWORD, follows=primary.port)
        sentinels = [
            SentinelServer(folder / f"sentinel-{one}", primary=primary.port or 0, password=PASSWORD, quorum=2)
            for one in range(3)
        ]
        first = Server(primary, folder / "one.log")
        others = [Server(one, folder / f"{one.port}.log") for one in (replica, *sentinels)]
        async with started(first, *others), open_valkey(name_sentinels(sentinels, PASSWORD)) as valkey:
            for one in sentinels:
                await one.wait_until_known(len(sentinels))
            accepted: list[bytes] = []
            async with EventAppender(ValkeyEventLog(valkey)) as appender:

                async def append(entries: range) -> None:
                    for number in entries:
                        entry = b"%d" % number
                        while True:
                            try:
                                accepted.append(await appender.append(entry, entry))
                                break
                            except Exception:  # noqa: BLE001 - 503: the client sends it again
                                await asyncio.sleep(0.1)

                async def fail_over() -> None:
                    while len(accepted) < 300:  # noqa: ASYNC110 - the appender sends no notice
                        await asyncio.sleep(0.01)
                    await first.end(signal.SIGKILL)
                    await sentinels[0].wait_until_moved(replica.port or 0)
                    # No replica is left; events are accepted again when there is one.
                    await first.start()

                async with asyncio.TaskGroup() as group:
                    group.create_task(fail_over())
                    for part in range(10):
                        group.create_task(append(range(part * 100, part * 100 + 100)))
            rows = await ValkeyEventLog(valkey).read("0-0", count_max=10_000, wait_seconds=0.1)
            found = {one.data for one in rows}

    assert len(accepted) == 1_000
    assert set(accepted) == found


async def answers(valkey: Valkey) -> bool:
    with contextlib.suppress(*VALKEY_AWAY):
        return bool(await valkey.ping())
    return False


async def test_sentinels_and_their_primary_are_reached_by_tls(tmp_path: Path) -> None:
    files, stranger = (make_tls_files(tmp_path / name, name=name) for name in ("tls", "stranger"))
    with an_open_folder() as folder:
        primary = PairedValkey(folder / "one", password=PASSWORD)
        async with (
            started(Server(primary, folder / "one.log")),
            taking_both(files, primary.port or 0) as encrypted,
        ):
            sentinel = SentinelServer(folder / "sentinel", primary=encrypted, password=PASSWORD, quorum=1)
            async with (
                started(Server(sentinel, folder / "sentinel.log")),
                speaking_tls(files, sentinel.port) as port,
            ):

                def name(ca: Path, scheme: str) -> str:
                    hosts = f":{PASSWORD}@127.0.0.1:{port}"
                    return f"{scheme}+sentinel://{hosts}/{SERVICE}?replicas=0&ssl_ca_certs={ca}"

                for scheme in ("rediss", "valkeys"):
                    async with open_valkey(name(files.authority, scheme)) as valkey:
                        # A busy machine may take longer to connect than a client waits for a sentinel.
                        await becomes(partial(answers, valkey), seconds=60)
                for url in (name(stranger.authority, "rediss"), name(files.authority, "redis")):
                    async with open_valkey(url) as valkey:
                        with pytest.raises(VALKEY_AWAY):
                            await valkey.ping()
