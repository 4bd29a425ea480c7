"""Asks a campaign's budget actor for a refund, and waits until the money ledger has it; the worker asks again later."""

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.messages import Refund
from adloom.budgets.transport.wire import INBOX_CHANNEL, encode_envelopes
from adloom.core.clock import Clock
from adloom.core.ids import AdvertiserId
from adloom.runtime.loops import pause
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.stats.refunds.store import (
    RefundRequest,
    choose_charges,
    find_request,
    list_pending,
    lock_refunds,
)

TRIES: Final = 4
TRY_SECONDS: Final = 0.75
POLL_SECONDS: Final = 0.05
RETRY_SECONDS: Final = 10.0
REQUEST_WAITS: Final = timedelta(seconds=2 * TRIES * TRY_SECONDS)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def give_back(
    connection: Connection,
    valkey: Valkey,
    request: RefundRequest,
    advertiser_id: AdvertiserId | None,
    *,
    tries: int = TRIES,
) -> RefundRequest:
    """Return the request, done if the worker did it in time. It is sent several times: its id makes it one refund."""
    address = make_campaign_address(request.campaign_id, advertiser_id)
    for _ in range(tries):
        parts, missing = await choose_charges(connection, request, advertiser_id)
        if not missing:
            message = encode_envelopes([(address, Refund(refund_id=request.id, parts=tuple(parts)))])
            try:
                await valkey.publish(INBOX_CHANNEL, message)
            except VALKEY_AWAY as error:
                log.warning("refund_waits", refund=str(request.id), reason=repr(error))
                return request
        for _ in range(int(TRY_SECONDS / POLL_SECONDS)):
            await asyncio.sleep(POLL_SECONDS)
            found = await find_request(connection, request.campaign_id, request.correlation_id)
            if found is not None and found.refunded_at is not None:
                return found
    return request


class PendingRefunds:
    """Gives back what was asked for while no worker ran, one refund after another."""

    def __init__(self, pool: Pool, valkey: Valkey, clock: Clock) -> None:
        self._pool = pool
        self._valkey = valkey
        self._now = clock.now

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.settle()
            except POSTGRES_AWAY as error:
                log.warning("refunds_wait", reason=repr(error))
            except Exception:
                log.exception("refunds_not_settled")
            await pause(RETRY_SECONDS, stop)

    async def settle(self) -> None:
        """Try each refund that its own request no longer waits for."""
        for request, advertiser_id in await list_pending(self._pool, before=self._now() - REQUEST_WAITS):
            async with lock_refunds(self._pool, request.campaign_id) as connection:
                await give_back(connection, self._valkey, request, advertiser_id, tries=1)
