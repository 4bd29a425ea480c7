"""Asks a campaign's budget actor for a refund, and waits until the money ledger has it."""

import asyncio
from typing import Final

from adloom.budgets.addresses import campaign_address
from adloom.budgets.messages import Refund
from adloom.budgets.transport.wire import INBOX_CHANNEL, encode_envelopes
from adloom.core.errors import UnavailableError
from adloom.core.ids import AdvertiserId
from adloom.runtime.postgres import Connection
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.stats.refunds.store import RefundRequest, choose_charges, find_request

TRIES: Final = 4
TRY_SECONDS: Final = 0.75
LOOK_SECONDS: Final = 0.05


async def give_back(
    connection: Connection, valkey: Valkey, request: RefundRequest, advertiser_id: AdvertiserId | None
) -> RefundRequest:
    """Return the request as done. It is sent several times, because its id makes it one refund."""
    address = campaign_address(request.campaign_id, advertiser_id)
    for _ in range(TRIES):
        parts, missing = await choose_charges(connection, request, advertiser_id)
        if not missing:
            message = encode_envelopes([(address, Refund(refund_id=request.id, parts=tuple(parts)))])
            await _publish(valkey, message)
        for _ in range(int(TRY_SECONDS / LOOK_SECONDS)):
            await asyncio.sleep(LOOK_SECONDS)
            found = await find_request(connection, request.campaign_id, request.correlation_id)
            if found is not None and found.refunded_at is not None:
                return found
    raise UnavailableError(
        "The refund was asked for, and is not in the money ledger yet. Ask again with the same correlationId "
        f"({request.correlation_id}): it is given back once. Is a worker running?"
    )


async def _publish(valkey: Valkey, message: bytes) -> None:
    try:
        await valkey.publish(INBOX_CHANNEL, message)
    except VALKEY_AWAY as error:
        raise UnavailableError(f"The worker that keeps the budgets cannot be reached: {error!r}") from error
