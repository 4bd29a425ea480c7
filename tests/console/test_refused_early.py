"""Requests without a session are refused before NiceGUI keeps anything of them."""

import nicegui
import pytest
from nicegui import Client

from tests.console.visitor import Visitor, redirect_of
from tests.support.control import ControlPlane

PAGES = ["/console", "/console/campaigns", "/console/system?tab=keys", "/console/nowhere/at/all"]
UNKNOWN = [
    "/_nicegui/",
    "/_nicegui/nothing",
    "/_nicegui/0.0.1/static/nicegui.js",
    f"/_nicegui/{nicegui.__version__}/nothing/here.js",
    f"/_nicegui/{nicegui.__version__}/static/no-such-file.js",
    f"/_nicegui/{nicegui.__version__}/components/no-such-component",
]


@pytest.mark.parametrize("cookie", ["", "adloom_console=made-up"])
@pytest.mark.parametrize("path", PAGES)
async def test_a_page_without_a_session_costs_no_memory(
    path: str, cookie: str, console: ControlPlane
) -> None:
    before = set(Client.instances)
    async with Visitor(console) as visitor:
        for _ in range(3):
            answer = await visitor.get(path, headers={"Cookie": cookie})
            assert redirect_of(answer)[0] == 303
            assert redirect_of(answer)[1].startswith("/console/login")

    assert set(Client.instances) == before


@pytest.mark.parametrize("path", UNKNOWN)
async def test_an_unknown_file_of_the_framework_costs_no_memory(path: str, console: ControlPlane) -> None:
    before = set(Client.instances)
    async with Visitor(console) as visitor:
        assert (await visitor.get(path)).status_code == 404

    assert set(Client.instances) == before


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_pages_are_read_and_nothing_else(method: str, ann: Visitor) -> None:
    before = set(Client.instances)

    assert (await ann.request(method, "/console")).status_code == 405

    assert set(Client.instances) == before


async def test_files_of_the_framework_are_served(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        answer = await visitor.get(f"/_nicegui/{nicegui.__version__}/static/nicegui.js")

    assert answer.status_code == 200
