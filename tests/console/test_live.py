"""Live pages refresh less often if a refresh is slow."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from inspect import isawaitable

import pytest
from nicegui import Client, ui
from nicegui.page import page

from adloom.console.page import refresh_every

SLOW_SECONDS = 0.05
RESTED_SECONDS = 10 * SLOW_SECONDS


async def quick() -> None:
    return


async def slow() -> None:
    await asyncio.sleep(SLOW_SECONDS)


async def failing() -> None:
    await slow()
    raise TimeoutError


@pytest.fixture
async def client() -> AsyncGenerator[Client]:
    """A page without a browser: the test runs its timers."""
    client = Client(page("/live"))
    yield client
    client.delete()


async def interval_after(client: Client, seconds: float, refresh: Callable[[], Awaitable[None]]) -> float:
    """Refresh once, and return the time until the next refresh."""
    with client:
        refresh_every(seconds, refresh)
    [timer] = [one for one in client.elements.values() if isinstance(one, ui.timer)]
    assert timer.callback is not None
    begun = timer.callback()
    assert isawaitable(begun)
    with contextlib.suppress(TimeoutError):
        await begun
    return timer.interval


async def test_a_quick_refresh_keeps_its_interval(client: Client) -> None:
    assert await interval_after(client, 600.0, quick) == pytest.approx(600.0)


@pytest.mark.parametrize("refresh", [slow, failing])
async def test_a_slow_refresh_rests_for_a_multiple_of_its_duration(
    client: Client, refresh: Callable[[], Awaitable[None]]
) -> None:
    assert await interval_after(client, 0.01, refresh) >= SLOW_SECONDS + RESTED_SECONDS


async def test_a_page_whose_browser_is_away_rests_until_it_is_back(client: Client) -> None:
    with client:
        refresh_every(600.0, quick)
    [timer] = [one for one in client.elements.values() if isinstance(one, ui.timer)]

    for handle in client.disconnect_handlers:  # pyright: ignore[reportUnknownVariableType]  NiceGUI's own
        client.safe_invoke(handle)
    was_active = timer.active
    for handle in client.connect_handlers:  # pyright: ignore[reportUnknownVariableType]  NiceGUI's own
        client.safe_invoke(handle)

    assert (was_active, timer.active) == (False, True)
