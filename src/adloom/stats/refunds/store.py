"""Refunds: SQL of requests and charges, and asking a campaign's budget actor until the money ledger has one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import date, datetime, timedelta
from typing import Final
from weakref import WeakKeyDictionary

import msgspec
import structlog

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.messages import Refund, RefundPart
from adloom.budgets.transport.wire import INBOX_CHANNEL, encode_envelopes
from adloom.core.clock import Clock
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool, Record, reset_after_use
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

LOCK: Final = 0x_AD11  # The first half of the advisory lock's key; the other is of the campaign.
PARTS_MAX: Final = 1_000
PENDING_MAX: Final = 100
TAKE_TURN: Final = "SELECT pg_advisory_lock($1, hashtext($2))"
GIVE_TURN: Final = "SELECT pg_advisory_unlock($1, hashtext($2))"
INSERT: Final = """
    INSERT INTO refunds (public_id, campaign_id, correlation_id, amount_micros, reason, day, placement_id, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (campaign_id, correlation_id) DO NOTHING
"""
_COLUMNS: Final = """it.public_id AS id, it.campaign_id, it.correlation_id, it.amount_micros AS amount, it.reason, it.day,
    it.placement_id, it.created_at,
    (SELECT min(entry.at) FROM money_entries AS entry WHERE entry.request_id = it.public_id) AS refunded_at"""
FIND: Final = f"SELECT {_COLUMNS} FROM refunds AS it WHERE it.campaign_id = $1 AND it.correlation_id = $2"  # noqa: S608 - our own names
_IS_PENDING: Final = "NOT EXISTS (SELECT FROM money_entries AS entry WHERE entry.request_id = it.public_id)"
HAS_PENDING: Final = f"SELECT EXISTS (SELECT FROM refunds AS it WHERE it.campaign_id = $1 AND {_IS_PENDING})"  # noqa: S608 - our own names
PENDING: Final = f"""
    SELECT {_COLUMNS}, advertiser.public_id AS advertiser_id
      FROM refunds AS it
      JOIN campaigns AS campaign ON campaign.public_id = it.campaign_id
      LEFT JOIN advertisers AS advertiser ON advertiser.id = campaign.advertiser_id
     WHERE it.created_at < $1 AND {_IS_PENDING}
     ORDER BY it.id
     LIMIT $2
"""  # noqa: S608 - our own names
LISTED: Final = RowSource(columns=_COLUMNS, tables="refunds AS it", tiebreak="it.id")
# Days with charges that are still there, the newest first.
DAYS: Final = """
    SELECT day, spent_micros FROM spend_days
     WHERE kind = 'campaign' AND id = $1 AND spent_micros > 0 AND ($2::date IS NULL OR day = $2)
       AND day NOT IN (SELECT removed.day FROM money_days_removed AS removed)
     ORDER BY day DESC
"""
# A refund has the second of the hour that it gives back.
CHARGED: Final = """
    SELECT day, budget_window, hour, banner_id, placement_id, sum(micros)::bigint AS micros
      FROM (SELECT *, CASE kind WHEN 'charge' THEN amount_micros ELSE -amount_micros END AS micros,
                   CASE kind WHEN 'charge' THEN extract(epoch FROM at)::bigint / 3600 * 3600 ELSE second END AS hour
              FROM money_entries
             WHERE day = $1 AND campaign_id = $2 AND kind IN ('charge', 'refund') AND banner_id IS NOT NULL
               AND advertiser_id IS NOT DISTINCT FROM $3 AND ($4::uuid IS NULL OR placement_id = $4)) AS it
     GROUP BY day, budget_window, hour, banner_id, placement_id
    HAVING sum(micros) > 0
     ORDER BY hour DESC, budget_window DESC, banner_id, placement_id
"""
TRIES: Final = 4
TRY_SECONDS: Final = 0.75
POLL_SECONDS: Final = 0.05
RETRY_SECONDS: Final = 10.0
REQUEST_WAITS: Final = timedelta(seconds=2 * TRIES * TRY_SECONDS)
log: structlog.stdlib.BoundLogger = structlog.get_logger()


AT_ONCE_MAX: Final = 3  # Of a process: each waits with one connection, and writes with another.
_turns: Final[WeakKeyDictionary[Pool, asyncio.Semaphore]] = WeakKeyDictionary()


class RefundRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an admin wants to give back: of all charges, or of those of a day or a placement."""

    id: RequestId
    campaign_id: CampaignId
    correlation_id: str
    amount: Micros
    reason: str
    day: date | None
    placement_id: PlacementId | None
    created_at: datetime
    refunded_at: datetime | None = None  # None: not yet.

    @property
    def state(self) -> str:
        return "pending" if self.refunded_at is None else "done"


async def insert_request(connection: Connection, request: RefundRequest) -> None:
    """Store a request; one with the same correlation id stays."""
    await connection.execute(
        INSERT,
        request.id,
        request.campaign_id,
        request.correlation_id,
        request.amount,
        request.reason,
        request.day,
        request.placement_id,
        request.created_at,
    )


async def find_request(
    connection: Connection, campaign_id: CampaignId, correlation_id: str
) -> RefundRequest | None:
    row = await connection.fetchrow(FIND, campaign_id, correlation_id)
    return None if row is None else msgspec.convert(dict(row), RefundRequest)


async def has_pending(connection: Connection, campaign_id: CampaignId) -> bool:
    """Return whether a refund of the campaign is not in the money ledger yet."""
    return bool(await connection.fetchval(HAS_PENDING, campaign_id))


async def list_pending(pool: Pool, *, before: datetime) -> list[tuple[RefundRequest, AdvertiserId | None]]:
    """Read the refunds that were asked for before a moment and are not done, with the advertisers of their campaigns."""
    found = await pool.fetch(PENDING, before, PENDING_MAX)
    return [(msgspec.convert(dict(row), RefundRequest), row["advertiser_id"]) for row in found]


async def list_requests(
    connection: Connection, campaign_id: CampaignId, page: PageRequest
) -> Listed[RefundRequest]:
    filters = Filters()
    filters.add("it.campaign_id = {}", campaign_id)
    return await fetch_structs(connection, LISTED, filters, page, RefundRequest)


async def choose_charges(
    connection: Connection, request: RefundRequest, advertiser_id: AdvertiserId | None
) -> tuple[list[RefundPart], Micros]:
    """Choose what is given back, the newest charges first; return also what is missing to the amount."""
    missing = int(request.amount)
    parts: list[RefundPart] = []
    for day_row in await connection.fetch(DAYS, request.campaign_id, request.day):
        for row in await connection.fetch(
            CHARGED, day_row["day"], request.campaign_id, advertiser_id, request.placement_id
        ):
            if not missing or len(parts) == PARTS_MAX:
                break
            amount = min(missing, row["micros"])
            missing -= amount
            parts.append(_build_part(row, Micros(amount), day_spent=Micros(day_row["spent_micros"])))
    return parts, Micros(missing)


@asynccontextmanager
async def lock_refunds(pool: Pool, campaign_id: CampaignId) -> AsyncGenerator[Connection]:
    """Wait for other refunds of the campaign: two must not choose the same charges."""
    turns = _turns.setdefault(pool, asyncio.Semaphore(AT_ONCE_MAX))
    async with turns, pool.acquire() as connection:
        reset_after_use(connection)
        await connection.execute(TAKE_TURN, LOCK, str(campaign_id))
        try:
            yield connection
        finally:
            # A lost connection has released the lock already.
            if not connection.is_closed():
                await connection.execute(GIVE_TURN, LOCK, str(campaign_id))


def _build_part(row: Record, amount: Micros, *, day_spent: Micros) -> RefundPart:
    return RefundPart(
        day=row["day"],
        day_spent=day_spent,
        window=row["budget_window"],
        hour=row["hour"],
        banner_id=BannerId(row["banner_id"]),
        placement_id=PlacementId(row["placement_id"]),
        amount=amount,
    )


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
        await PollLoop(self.settle, every_seconds=RETRY_SECONDS, away=POSTGRES_AWAY, name="refunds").run(stop)

    async def settle(self) -> None:
        """Try each refund that its own request no longer waits for."""
        for request, advertiser_id in await list_pending(self._pool, before=self._now() - REQUEST_WAITS):
            async with lock_refunds(self._pool, request.campaign_id) as connection:
                await give_back(connection, self._valkey, request, advertiser_id, tries=1)
