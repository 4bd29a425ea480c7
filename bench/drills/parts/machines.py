"""Delivery, control and worker twice, on one PostgreSQL and on a Valkey with a replica and three sentinels."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from typing import Any, Final

import argon2
import httpx
import msgspec

from adloom.core.caller import Role
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds, UserId
from adloom.identity.model import User
from adloom.identity.store import insert_user
from adloom.runtime import migrate
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.supervisor.program import Program
from bench.drills.cluster import Server
from bench.drills.stand_ins import PairedValkey, SentinelServer, name_sentinels
from bench.product import build_document
from bench.servers import PASSWORD, filter_environment, open_folder

NAMES: Final = ("a", "b")
PLANES: Final = {
    "delivery": "ADLOOM_DELIVERY_PORT",
    "control": "ADLOOM_CONTROL_PORT",
    "worker": "WORKER_PORT",
}
SENTINELS: Final = 3
SECRET: Final = "a-secret-of-the-drills-that-is-long-enough"  # noqa: S105 - of servers that are gone in a minute
EMAIL: Final = "admin@example.com"
SLUG: Final = "drill"
READY_SECONDS_MAX: Final = 120.0
ANSWER_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 0.1


class Plane:
    """One process of ours, as a server that can be killed and started again."""

    def __init__(self, plane: str, name: str, environment: Mapping[str, str]) -> None:
        self.port = find_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.program = Program(
            name=f"{plane}-{name}",
            arguments=(sys.executable, "-m", f"adloom.app.{plane}"),
            environment={
                **environment,
                "ADLOOM_PROCESS": f"{plane}-{name}",
                "ADLOOM_SPOOL_DIR": f"{environment['ADLOOM_SPOOL_DIR']}-{name}",
                PLANES[plane]: str(self.port),
            },
        )

    def change(self, variables: Mapping[str, str]) -> None:
        """Change settings from the next start on."""
        self.program = msgspec.structs.replace(
            self.program, environment={**self.program.environment, **variables}
        )

    async def prepare(self) -> None:
        """Do nothing: it needs no folder of its own."""

    async def wait_until_ready(self) -> None:
        async with asyncio.timeout(READY_SECONDS_MAX), httpx.AsyncClient() as client:
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    if (await client.get(f"{self.url}/health/ready")).status_code == HTTPStatus.OK:
                        return
                await asyncio.sleep(POLL_SECONDS)


class Parts:
    """What a drill works on: processes by plane and name, and the servers that they need."""

    def __init__(
        self,
        pool: Pool,
        planes: Mapping[tuple[str, str], tuple[Plane, Server]],
        valkey: Server,
        replica: PairedValkey,
        sentinels: list[SentinelServer],
    ) -> None:
        self.pool = pool
        self._planes = planes
        self.valkey = valkey  # The primary, at first.
        self.replica = replica
        self.sentinels = sentinels
        self.token = ""
        self.impression: dict[str, Any] = {}

    def find_url(self, plane: str, name: str) -> str:
        return self._planes[plane, name][0].url

    async def kill(self, plane: str, name: str) -> None:
        await self._planes[plane, name][1].end(signal.SIGKILL)

    async def start(self, plane: str, name: str) -> None:
        await self._planes[plane, name][1].start()

    async def restart(self, plane: str, name: str, variables: Mapping[str, str]) -> None:
        """Stop a process in order, and start it with other settings."""
        process, server = self._planes[plane, name]
        await server.end(signal.SIGTERM)
        process.change(variables)
        await server.start()


@contextlib.asynccontextmanager
async def run_parts() -> AsyncGenerator[Parts]:
    """Run servers and two of every process, with an ad; all of it is removed at the end."""
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(open_folder())
        postgres = EmbeddedPostgres(
            folder / "postgres", listening=Listening(port=find_port()), password=PASSWORD
        )
        primary = PairedValkey(folder / "valkey", password=PASSWORD)
        replica = PairedValkey(folder / "replica", password=PASSWORD, follows=primary.port)
        sentinels = [
            SentinelServer(folder / f"sentinel-{one}", primary=primary.port or 0, password=PASSWORD, quorum=2)
            for one in range(SENTINELS)
        ]
        first = Server(primary, folder / "valkey.log")
        others = [postgres, replica, *sentinels]
        rest = [Server(one, folder / f"server-{place}.log") for place, one in enumerate(others)]
        for server in (first, *rest):
            stack.push_async_callback(server.end, signal.SIGTERM)
            await server.start()
        for one in sentinels:
            await one.wait_until_known(SENTINELS)
        await migrate.upgrade(postgres.url)
        pool = await stack.enter_async_context(open_pool(postgres.url, size_max=2))
        environment = {
            **filter_environment(os.environ),
            "DATABASE_URL": postgres.url,
            "REDIS_URL": name_sentinels(sentinels, PASSWORD),
            "JWT_SECRET": SECRET,
            "ADLOOM_TOKEN_SECRET": SECRET,
            "ADLOOM_SPOOL_DIR": str(folder / "spool"),
            "ADLOOM_ASSETS_URL": (folder / "files").as_uri(),
        }
        planes = {(plane, name): Plane(plane, name, environment) for plane in PLANES for name in NAMES}
        servers = {key: (one, Server(one, folder / f"{one.program.name}.log")) for key, one in planes.items()}
        parts = Parts(pool, servers, first, replica, sentinels)
        async with asyncio.TaskGroup() as group:
            for _, server in servers.values():
                stack.push_async_callback(server.end, signal.SIGTERM)
                group.create_task(server.start())
        await _make_ad(parts)
        yield parts


async def _make_ad(parts: Parts) -> None:
    """Log in at one control, create an ad, and wait until both deliveries serve it."""
    hashed = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    admin = User(id=UserId(SystemIds().make()), role=Role.ADMIN, account_id=None, disabled_at=None)
    async with parts.pool.acquire() as connection:
        await insert_user(connection, admin, email=EMAIL, password_hash=hashed, now=SystemClock().now())
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX) as client:
        control = parts.find_url("control", "a")
        answer = await client.post(f"{control}/auth/login", json={"email": EMAIL, "password": PASSWORD})
        parts.token = answer.raise_for_status().json()["accessToken"]
        document = build_document(SLUG, campaigns=1, slots=1, terms={})
        headers = {"Authorization": f"Bearer {parts.token}"}
        answer = await client.post(f"{control}/admin/import", json=document, headers=headers)
        answer.raise_for_status()
        async with asyncio.timeout(READY_SECONDS_MAX):
            served, _ = [await _wait_until_served(client, parts.find_url("delivery", name)) for name in NAMES]
        banner = served["banners"][0]
        parts.impression = {
            "bannerId": banner["id"],
            "placementId": served["placement"]["id"],
            "campaignId": banner["campaignId"],
        }


async def _wait_until_served(client: httpx.AsyncClient, delivery: str) -> dict[str, Any]:
    while True:
        served = (await client.get(f"{delivery}/banners/serve/{SLUG}")).json()
        if served.get("banners"):
            return served
        await asyncio.sleep(POLL_SECONDS)
