"""Importers: an admin, an advertiser and a publisher."""

from collections.abc import AsyncGenerator

import pytest

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from tests.support.control import Client, ControlPlane
from tests.support.documents import Importer


@pytest.fixture
def importer(admin: Client) -> Importer:
    return Importer(admin)


@pytest.fixture
async def tea(control: ControlPlane) -> AsyncGenerator[Importer]:
    async with control.acting_as(Role.ADVERTISER, SystemIds().make()) as client:
        yield Importer(client)


@pytest.fixture
async def news(control: ControlPlane) -> AsyncGenerator[Importer]:
    async with control.acting_as(Role.PUBLISHER, SystemIds().make()) as client:
        yield Importer(client)
