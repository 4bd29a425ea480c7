"""The control plane, for tests of its statistics."""

from collections.abc import AsyncGenerator
from uuid import uuid4

import pytest

from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from tests.stats.event_writer import EventWriter
from tests.support.control import Client, ControlPlane, admin, control

__all__ = ["admin", "control"]


@pytest.fixture
def writer(pool: Pool) -> EventWriter:
    return EventWriter(pool)


@pytest.fixture
async def advertiser(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.ADVERTISER, uuid4()) as client:
        yield client


@pytest.fixture
async def publisher(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.PUBLISHER, uuid4()) as client:
        yield client
