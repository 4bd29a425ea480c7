"""A page about one thing: read and built, and both again whenever the thing has changed."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from adloom.console.client import Json
from adloom.console.page import Visit

Again = Callable[[], Awaitable[None]]
Build = Callable[[Visit, Json, str, Again], Awaitable[None]]


async def thing_page(visit: Visit, address: str, build: Build) -> None:
    """Build the page of what is at an address of the API; `build` gets the way to build it anew."""

    async def again() -> None:
        await body.refresh()

    @ui.refreshable
    async def body() -> None:
        await build(visit, await visit.api.get(address), address, again)

    await body()
