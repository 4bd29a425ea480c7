"""The control plane in the test's own process, and its clients."""

import functools
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import argon2
import httpx
import msgspec
import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute

from adloom.app.control import build_control
from adloom.core.caller import ACCOUNT_ROLES, Caller, Role
from adloom.core.clock import ManualClock
from adloom.core.ids import SystemIds
from adloom.runtime.auth.access_token import issue_access_token
from adloom.runtime.auth.passwords import Passwords
from adloom.runtime.files.place import write_folder_url
from adloom.runtime.settings import ControlSettings, Secret, Services, Telemetry
from tests.support.builders import (
    NOON,
    Json,
    advertiser_body,
    banner_body,
    campaign_body,
    placement_body,
    publisher_body,
    reference_body,
    rule_body,
    site_body,
)

SECRET = "a-secret-of-the-tests-that-is-long-enough"
# A hundredth of the work: the tests are not about the strength of the hash.
FAST_PASSWORDS = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def control_settings(database_url: str, redis_url: str, **changes: Any) -> ControlSettings:
    settings = ControlSettings(
        services=Services(database_url=Secret(database_url), redis_url=Secret(redis_url)),
        telemetry=Telemetry(
            process="control", log_level="info", log_format="json", metrics_port=None, otlp_endpoint=None
        ),
        host="127.0.0.1",
        port=0,
        public_url="http://127.0.0.1:8090",
        jwt_secret=Secret(SECRET),
        token_secret=Secret(SECRET),
        rate_limit_permits_per_minute=1_000_000,
        trusted_proxies=(),
        assets_url=write_folder_url(Path("/nonexistent")),
    )
    return msgspec.structs.replace(settings, **changes)


class Client(httpx.AsyncClient):
    """An API client of one role, with short methods that create entities."""

    async def made(self, path: str, body: Json) -> Json:
        answer = await self.post(path, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def make_placement(self, **fields: object) -> Json:
        return await self.made("/admin/placements", placement_body(**fields))

    async def make_banner(self, **fields: object) -> Json:
        return await self.made("/admin/banners", banner_body(**fields))

    async def make_campaign(self, **fields: object) -> Json:
        return await self.made("/admin/campaigns", campaign_body(**fields))

    async def make_advertiser(self, **fields: object) -> Json:
        return await self.made("/admin/advertisers", advertiser_body(**fields))

    async def make_publisher(self, **fields: object) -> Json:
        return await self.made("/admin/publishers", publisher_body(**fields))

    async def make_site(self, **fields: object) -> Json:
        return await self.made("/admin/sites", site_body(**fields))

    async def make_reference(self, kind: str, **fields: object) -> Json:
        return await self.made(f"/admin/references/{kind}", reference_body(**fields))

    async def make_rule(self, campaign: Json, **fields: object) -> Json:
        return await self.made(
            "/admin/targeting-rules", rule_body(**{"campaignId": campaign["id"], **fields})
        )

    async def make_cap(self, banner: Json, **fields: object) -> Json:
        body = {"adId": banner["id"], "maxImpressionsPerUser": 3, **fields}
        return await self.made("/api/v1/admin/frequency/caps", body)

    async def link(self, campaign: Json, placement: Json) -> Json:
        path = f"/admin/campaigns/{campaign['id']}/placements"
        return await self.made(path, {"placementId": placement["id"]})

    async def assign(self, campaign: Json, placement: Json, banner: Json, **fields: object) -> Json:
        path = f"/admin/campaigns/{campaign['id']}/placements/{placement['id']}/banners"
        return await self.made(path, {"bannerId": banner["id"], **fields})


class ControlPlane:
    """A running control plane with a manual clock."""

    def __init__(self, app: FastAPI, clock: ManualClock) -> None:
        self.app = app
        self.clock = clock

    def client(self, **headers: str) -> Client:
        return Client(
            transport=httpx.ASGITransport(self.app), base_url="http://control.test", headers=headers
        )

    def acting_as(self, role: Role, account_id: uuid.UUID | None = None) -> Client:
        return self.client(Authorization=f"Bearer {self.token(role, account_id)}")

    def token(self, role: Role, account_id: uuid.UUID | None = None, *, subject: str = "test") -> str:
        if role in ACCOUNT_ROLES and account_id is None:
            account_id = SystemIds().make()
        caller = Caller(subject=subject, role=role, account_id=account_id)
        return issue_access_token(SECRET, caller, now=self.clock.now(), lifetime=timedelta(hours=1))


@functools.cache
def prepared_routes() -> tuple[BaseRoute, ...]:
    """Return the API's routes, which do not depend on their app.

    The framework prepares them again for each app at its first request; that took longer than most tests.
    """
    settings = control_settings("postgresql://nowhere", "redis://nowhere")
    return tuple(build_control(settings, clock=ManualClock(NOON), ids=SystemIds()).router.routes)


@asynccontextmanager
async def running_control(
    settings: ControlSettings, *, has_console: bool = False
) -> AsyncGenerator[ControlPlane]:
    clock = ManualClock(NOON)
    app = build_control(
        settings,
        clock=clock,
        ids=SystemIds(),
        passwords=Passwords(FAST_PASSWORDS),
        has_console=has_console,
    )
    routes = prepared_routes()
    app.router.routes[: len(routes)] = routes
    async with app.router.lifespan_context(app):
        yield ControlPlane(app, clock)


def problem(answer: httpx.Response, status: int, code: str) -> Json:
    """Check that an answer is the contract's error, and return its body."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: Json = answer.json()
    assert (body["status"], body["errorCode"], body["message"]) == (status, code, body["detail"])
    return body


def error_fields(body: Json) -> set[str]:
    return {entry["field"] for entry in body.get("errors", [])}


@pytest.fixture
async def control(database_url: str, redis_url: str, tmp_path: Path) -> AsyncGenerator[ControlPlane]:
    settings = control_settings(database_url, redis_url, assets_url=write_folder_url(tmp_path / "assets"))
    async with running_control(settings) as plane:
        yield plane


@pytest.fixture
async def admin(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.ADMIN) as client:
        yield client


@pytest.fixture
async def advertiser(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.ADVERTISER, uuid.uuid4()) as client:
        yield client


@pytest.fixture
async def publisher(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.PUBLISHER, uuid.uuid4()) as client:
        yield client
