"""A control plane with its console, in the test's own process."""

from collections.abc import AsyncGenerator

import pytest

from adloom.core.caller import Role
from tests.console.visitor import Visitor, make_person
from tests.support.control import ControlPlane, control_settings, running_control
from tests.support.library_caches import share_signatures_of_handlers

share_signatures_of_handlers()


@pytest.fixture
async def console(database_url: str, redis_url: str) -> AsyncGenerator[ControlPlane]:
    settings = control_settings(database_url, redis_url, public_url="http://control.test")
    async with running_control(settings, has_console=True) as plane:
        await make_person(plane, "ann@example.com", Role.ADMIN)
        yield plane


@pytest.fixture
async def ann(console: ControlPlane) -> AsyncGenerator[Visitor]:
    """An admin who is logged in."""
    async with Visitor(console) as visitor:
        await visitor.log_in("ann@example.com")
        yield visitor
