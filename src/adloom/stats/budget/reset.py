"""Asks a campaign's budget actor to open a new daily window, and waits until it can be read."""

import asyncio
import contextlib
from typing import Final

from adloom.budgets.messages import OpenWindow
from adloom.budgets.status_store import load_window
from adloom.budgets.transport.wire import INBOX_CHANNEL, encode_envelopes
from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

VISIBLE_SECONDS_MAX: Final = 2.0
POLL_SECONDS: Final = 0.04
# A campaign without a stored state begins its first day, and so its first window, with this message.
FIRST_WINDOW: Final = 1


async def open_window(pool: Pool, valkey: Valkey, address: Address, *, reason: str) -> None:
    """Open a new daily window; UnavailableError where it cannot be read in time.

    The request is sent once: a second one would also forget what was spent between the two.
    """
    async with pool.acquire() as connection:
        before = await load_window(connection, address)
    await _send(valkey, address, reason=reason)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(VISIBLE_SECONDS_MAX):
            await _wait(pool, address, beyond=FIRST_WINDOW if before is None else before)
            return
    raise UnavailableError("The new window was asked for, and is not there yet. Look at the budget again.")


async def _send(valkey: Valkey, address: Address, *, reason: str) -> None:
    message = encode_envelopes([(address, OpenWindow(reason=reason))])
    try:
        async with asyncio.timeout(VISIBLE_SECONDS_MAX):
            heard_by: int = await valkey.publish(INBOX_CHANNEL, message)
    except (*VALKEY_AWAY, TimeoutError) as error:
        raise UnavailableError(f"The worker that keeps the budgets cannot be reached: {error!r}") from error
    if not heard_by:
        raise UnavailableError(
            "Nobody keeps the budgets at the moment, so nothing was reset. Is a worker running?"
        )


async def _wait(pool: Pool, address: Address, *, beyond: int) -> None:
    while True:
        async with pool.acquire() as connection:
            window = await load_window(connection, address)
        if window is not None and window > beyond:
            return
        await asyncio.sleep(POLL_SECONDS)
