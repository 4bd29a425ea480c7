"""Name servers of strangers that do not answer keep only look-ups waiting."""

import asyncio
import socket
from threading import Event
from typing import Any

import pytest

from adloom.runtime.outbound.client import LOOK_UPS_AT_ONCE_MAX, resolve


async def test_look_ups_that_hang_leave_threads_for_passwords_and_uploads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = Event()

    def hang(*_: Any, **_named: Any) -> list[Any]:
        answered.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    # More than the loop has threads for.
    look_ups = [asyncio.create_task(resolve(f"{n}.slow.test")) for n in range(3 * LOOK_UPS_AT_ONCE_MAX)]
    try:
        await asyncio.sleep(0.05)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 5) == "done"
    finally:
        answered.set()
    assert await asyncio.gather(*look_ups) == [[]] * len(look_ups)
