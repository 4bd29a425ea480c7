"""The budget actors of a worker over real servers, and delivery processes that send only what a test sends."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.kinds import make_campaign_kind
from adloom.budgets.messages import LeaseAnswer, LeaseUsage
from adloom.budgets.transport.sessions import DeliverySessions
from adloom.budgets.transport.wire import (
    INBOX_CHANNEL,
    BudgetUpdate,
    SessionHeartbeat,
    decode_updates,
    encode_envelopes,
    make_session_address,
    make_session_channel,
)
from adloom.budgets.worker import BudgetActors, WorkerIdentity, make_budget_actors
from adloom.core.clock import Clock, SystemClock
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.eventually import eventually
from tests.support.rows import an_id

CAMPAIGN = CampaignId(an_id(100))
ADVERTISER = AdvertiserId(an_id(1))
UNIT = Micros(1_000_000)

INSERT_ADVERTISER = """
    INSERT INTO advertisers (public_id, name, daily_budget_paisa, timezone) VALUES ($1, 'A', $2, $3)
"""
INSERT_CAMPAIGN = """
    INSERT INTO campaigns (
        public_id, name, advertiser_id, status, budget_daily_paisa, budget_total_paisa, bid_type,
        bid_amount_micros, pacing_strategy, timezone, starts_at, ends_at
    )
    VALUES ($1, 'C', (SELECT id FROM advertisers WHERE public_id = $2), $3::text::campaign_status, $4, $5,
            'cpm', 1000000, $6::text::campaign_pacing, $7, $8, $9)
"""


async def insert_advertiser(
    pool: Pool, advertiser_id: UUID = ADVERTISER, *, budget: int | None = None, timezone: str = "UTC"
) -> None:
    await pool.execute(INSERT_ADVERTISER, advertiser_id, budget, timezone)


async def insert_campaign(  # noqa: PLR0913 - the fields that tests set
    pool: Pool,
    campaign_id: UUID = CAMPAIGN,
    *,
    advertiser: UUID | None = None,
    status: str = "active",
    daily: int | None = 10_000,
    total: int | None = None,
    pacing: str = "Accelerated",
    timezone: str = "UTC",
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> None:
    """A campaign with 100 units a day."""
    await pool.execute(
        INSERT_CAMPAIGN, campaign_id, advertiser, status, daily, total, pacing, timezone, starts_at, ends_at
    )


class Stage:
    """The budget actors of one worker."""

    def __init__(  # noqa: PLR0913 - the options that tests set
        self,
        pool: Pool,
        valkey: Valkey,
        *,
        clock: Clock | None = None,
        name: str = "worker",
        life: str = "1",
        silence_max: float = 10.0,
    ) -> None:
        self.pool = pool
        self.valkey = valkey
        self.clock = clock or SystemClock()
        self.budget_actors: BudgetActors = make_budget_actors(
            pool,
            valkey,
            self.clock,
            worker=WorkerIdentity(name, life),
            hold_seconds=300,
            sessions=DeliverySessions(silence_max=silence_max),
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[BudgetActors]:
        """Run the budget actors; yield when they lead and listen."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.budget_actors.leader.run(stop))
            await eventually(lambda: self.budget_actors.host.is_open, seconds=30)
            await self.wait_for_inbox()
            try:
                yield self.budget_actors
            finally:
                stop.set()

    async def wait_for_inbox(self, *, seconds: float = 20) -> None:
        """Wait until the inbox is subscribed."""
        await wait_for_subscriber(self.valkey, INBOX_CHANNEL, seconds=seconds)

    async def state(
        self, campaign_id: UUID = CAMPAIGN, advertiser: UUID | None = None
    ) -> CampaignState | None:
        """Load the stored state of a campaign."""
        key = address_of(campaign_id, advertiser).key
        row = await self.pool.fetchrow(
            "SELECT state, format FROM brain_states WHERE kind = 'campaign' AND key = $1", key
        )
        return None if row is None else make_campaign_kind().decode(row["state"], format_number=row["format"])


async def wait_for_subscriber(valkey: Valkey, channel: str, *, seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not (await valkey.pubsub_numsub(channel))[0][1]:  # noqa: ASYNC110 - the server sends no notice of it
            await asyncio.sleep(0.01)


def address_of(campaign_id: UUID = CAMPAIGN, advertiser: UUID | None = None) -> Address:
    return make_campaign_address(
        CampaignId(campaign_id), None if advertiser is None else AdvertiserId(advertiser)
    )


class Process:
    """A delivery process, as far as budget actors know it."""

    def __init__(self, valkey: Valkey, session: int = 1) -> None:
        self.valkey = valkey
        self.session = session
        self.report = 0
        self.received: list[BudgetUpdate] = []

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator["Process"]:
        async with self.valkey.pubsub() as subscription, asyncio.TaskGroup() as group:
            await subscription.subscribe(make_session_channel(self.session))
            await subscription.get_message(timeout=30)
            task = group.create_task(self._listen(subscription))
            yield self
            task.cancel()

    async def _listen(self, subscription: Any) -> None:
        while True:
            message = cast("dict[str, Any] | None", await subscription.get_message(timeout=4))
            if message is not None and message["type"] == "message":
                self.received += decode_updates(message["data"])

    async def send(self, *envelopes: tuple[Address, Any]) -> None:
        await self.valkey.publish(INBOX_CHANNEL, encode_envelopes(envelopes))

    async def send_heartbeat(self) -> None:
        await self.send(
            (make_session_address(self.session), SessionHeartbeat(session=self.session, process="delivery-1"))
        )

    async def report_usage(self, address: Address | None = None, **fields: Any) -> int:
        """Send a report that asks for a lease; return the number of the report."""
        self.report += 1
        usage: dict[str, Any] = {"lease": 0, "want": UNIT, "cost": UNIT, **fields}
        await self.send(
            (address or address_of(), LeaseUsage(session=self.session, report=self.report, **usage))
        )
        return self.report

    async def ask_for_lease(self, address: Address | None = None, **fields: Any) -> LeaseAnswer:
        """Ask for a lease, and return the answer."""
        report = await self.report_usage(address, **fields)
        await eventually(lambda: any(one.report == report for one in self.answers), seconds=30)
        return next(one for one in self.answers if one.report == report)

    @property
    def answers(self) -> Sequence[LeaseAnswer]:
        return [one for one in self.received if isinstance(one, LeaseAnswer)]
