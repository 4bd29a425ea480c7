"""Fixtures: a control plane, its clients, and a worker for its queue."""

from collections.abc import AsyncGenerator

import pytest

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import Secret
from adloom.sync.queue import StatsQueue, open_stats_queue
from tests.support.control import Client, ControlPlane, admin, control_settings, running_control
from tests.sync.http.seller import SEAL, Seller, a_seller, running_worker
from tests.sync.shop import a_processor

__all__ = ["admin"]


@pytest.fixture
async def control(database_url: str, redis_url: str) -> AsyncGenerator[ControlPlane]:
    async with running_control(
        control_settings(database_url, redis_url, sealing_secrets=(Secret(SEAL),))
    ) as plane:
        yield plane


@pytest.fixture
async def seller(control: ControlPlane) -> AsyncGenerator[Seller]:
    account_id = SystemIds().make()
    async with control.acting_as(Role.ADVERTISER, account_id) as client:
        yield await a_seller(client, account_id)


@pytest.fixture
async def other_client(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.ADVERTISER) as client:
        yield client


@pytest.fixture
async def stats_queue(redis_url: str) -> AsyncGenerator[StatsQueue]:
    async with open_stats_queue(redis_url) as queue:
        yield queue


@pytest.fixture
async def worker(control: ControlPlane, pool: Pool, redis_url: str) -> AsyncGenerator[None]:
    processor = a_processor(pool, clock=control.clock)
    async with running_worker(redis_url, processor.handle):
        yield
