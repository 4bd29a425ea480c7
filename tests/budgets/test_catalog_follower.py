"""Configurations of the catalog reach campaigns and advertisers: with their first message, and soon after a change."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adloom.budgets.addresses import make_advertiser_address
from adloom.budgets.config import catalog_follower
from adloom.budgets.config.catalog_follower import VERSION_KEY, CatalogFollower
from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.budgets.config.configuration import (
    AdvertiserRow,
    CampaignRow,
    build_advertiser_config,
    build_campaign_config,
)
from adloom.budgets.config.entity_config import EntityConfigurer
from adloom.budgets.messages import ConfigureAdvertiser, ConfigureCampaign
from adloom.core.clock import ManualClock, SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.money import Micros
from adloom.resource.changes import NOTICE_CHANNEL, Catalog, IndexedNoun
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.worker_stage import (
    ADVERTISER,
    CAMPAIGN,
    UNIT,
    Process,
    Stage,
    address_of,
    insert_advertiser,
    insert_campaign,
    wait_for_subscriber,
)
from tests.support.eventually import eventually
from tests.support.for_each import for_each
from tests.support.rows import an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class RecordingHost:
    """A host that only records messages."""

    def __init__(self) -> None:
        self.messages: list[tuple[Address, Any]] = []
        self.has_room = True

    def tell(self, address: Address, message: Any) -> bool:
        if self.has_room:
            self.messages.append((address, message))
        return self.has_room

    def send_durably(self, address: Address, message: Any) -> "asyncio.Future[None]":
        raise NotImplementedError(address, message)

    async def wait_until_sent(self) -> None:
        """Nothing waits."""

    def take(self) -> list[tuple[Address, Any]]:
        taken, self.messages = self.messages, []
        return taken


class Follower:
    """A catalog follower that checks for changes when a test calls it."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.pool = pool
        self.valkey = valkey
        self.host = RecordingHost()
        self.catalog = BudgetCatalog(pool)
        self.configurer = EntityConfigurer(self.catalog, ManualClock(NOON), hold_seconds=300)
        self.follower = self.restart()

    def restart(self) -> CatalogFollower:
        self.follower = CatalogFollower(self.valkey, self.catalog, self.configurer, self.host)
        return self.follower

    async def check(self) -> list[tuple[Address, Any]]:
        await self.follower.poll()
        return self.host.take()

    async def change(self, noun: str, statement: str, *values: object) -> None:
        """Change a campaign or an advertiser, as the catalog's stores do."""
        table = f"{noun}s"
        async with Catalog(self.pool, self.valkey).write() as write:
            key = await write.connection.fetchval(
                f"UPDATE {table} SET {statement} RETURNING id",  # noqa: S608 - constants of the tests
                *values,
            )
            if noun == "campaign":
                write.touch(IndexedNoun.CAMPAIGN, key)
            else:
                write.touch(IndexedNoun.ADVERTISER, key)

    async def store_state(self, address: Address) -> None:
        await self.pool.execute(
            "INSERT INTO brain_states (kind, key, shard, version, format, state, changed_at) "
            "VALUES ($1, $2, 0, 1, 1, '', now())",
            *address,
        )


@pytest.fixture
async def follower(pool: Pool, valkey: Valkey) -> Follower:
    await insert_advertiser(pool, budget=5_000, timezone="Asia/Kolkata")
    await insert_campaign(pool, advertiser=ADVERTISER, daily=100, total=700, timezone="Europe/Berlin")
    return Follower(pool, valkey)


# --- the configuration of a campaign


def an_advertiser_row(**fields: Any) -> AdvertiserRow:
    row: dict[str, Any] = {
        "id": ADVERTISER,
        "is_deleted": False,
        "daily_budget_paisa": None,
        "timezone": "UTC",
    }
    return AdvertiserRow(**{**row, **fields})


def a_row(**fields: Any) -> CampaignRow:
    row: dict[str, Any] = {
        "id": CAMPAIGN,
        "advertiser": None,
        "status": "active",
        "is_deleted": False,
        "starts_at": None,
        "ends_at": None,
        "budget_daily_paisa": None,
        "budget_total_paisa": None,
        "pacing_strategy": "Smooth",
        "timezone": "Europe/Berlin",
    }
    return CampaignRow(**{**row, **fields})


def configure(row: CampaignRow) -> ConfigureCampaign:
    return build_campaign_config(row, version=1, hold_seconds=300, now=NOON)


@for_each(
    ("fields", "is_running"),
    [
        ({}, True),
        ({"status": "draft"}, False),
        ({"status": "paused"}, False),
        ({"status": "ended"}, False),
        ({"status": "cancelled"}, False),
        ({"is_deleted": True}, False),
        ({"advertiser": an_advertiser_row(is_deleted=True)}, False),
        ({"advertiser": an_advertiser_row()}, True),
        ({"ends_at": NOON}, False),
        ({"ends_at": NOON + HOUR}, True),
        # It starts at its second without a message; leases are taken before that.
        ({"starts_at": NOON + HOUR}, True),
        ({"status": "scheduled", "starts_at": NOON + HOUR}, True),
        ({"status": "scheduled", "starts_at": NOON - HOUR, "ends_at": NOON}, False),
        ({"status": "scheduled"}, False),
    ],
)
def test_a_campaign_runs_while_it_may_serve_now_or_after_its_start(
    fields: dict[str, Any], *, is_running: bool
) -> None:
    assert configure(a_row(**fields)).is_running is is_running


@pytest.mark.parametrize(
    ("advertiser", "timezone", "is_allotted"),
    [
        (None, "Europe/Berlin", False),
        (an_advertiser_row(timezone="Asia/Kolkata"), "Asia/Kolkata", False),
        (an_advertiser_row(timezone="Asia/Kolkata", daily_budget_paisa=0), "Asia/Kolkata", True),
        (an_advertiser_row(timezone="No/Where", daily_budget_paisa=1), "UTC", True),
        (an_advertiser_row(daily_budget_paisa=1, is_deleted=True), "UTC", False),
    ],
)
def test_the_zone_and_the_allotment_of_a_campaign_follow_its_advertiser(
    advertiser: AdvertiserRow | None, timezone: str, *, is_allotted: bool
) -> None:
    config = configure(a_row(advertiser=advertiser))

    assert (config.timezone, config.is_allotted) == (timezone, is_allotted)


def test_budgets_are_configured_in_micros_and_none_stays_none() -> None:
    config = configure(a_row(budget_daily_paisa=100))

    assert (config.daily_budget, config.total_budget) == (UNIT, None)
    assert build_advertiser_config(an_advertiser_row(daily_budget_paisa=0), version=1).daily_budget == Micros(
        0
    )


async def test_the_first_message_of_an_actor_is_its_configuration(follower: Follower) -> None:
    campaign, advertiser = address_of(CAMPAIGN, ADVERTISER), make_advertiser_address(ADVERTISER)
    unknown = address_of(an_id(7))

    messages = await follower.configurer.load_first_messages([campaign, advertiser, unknown])

    assert messages == {
        campaign: [
            ConfigureCampaign(
                version=0,
                campaign_id=CAMPAIGN,
                advertiser_id=ADVERTISER,
                is_running=True,
                daily_budget=UNIT,
                total_budget=Micros(7 * UNIT),
                pacing=PacingStrategy.ACCELERATED,
                timezone="Asia/Kolkata",
                hold_seconds=300,
                is_allotted=True,
                has_bid=True,
            )
        ],
        advertiser: [
            ConfigureAdvertiser(
                version=0,
                advertiser_id=ADVERTISER,
                is_active=True,
                daily_budget=Micros(50 * UNIT),
                timezone="Asia/Kolkata",
            )
        ],
    }


async def test_a_campaign_is_not_configured_under_an_address_that_is_not_its_own(follower: Follower) -> None:
    assert (
        await follower.configurer.load_first_messages([address_of(CAMPAIGN), address_of(CAMPAIGN, an_id(2))])
        == {}
    )


# --- changes of the configuration


async def test_a_change_is_sent_once_to_the_actor_that_it_concerns(follower: Follower) -> None:
    await follower.store_state(address_of(CAMPAIGN, ADVERTISER))
    await follower.store_state(make_advertiser_address(ADVERTISER))
    assert await follower.check() == []

    await follower.change("campaign", "budget_daily_paisa = 200")
    [(address, message)] = await follower.check()
    await follower.change("advertiser", "daily_budget_paisa = 1")
    [(advertiser, advertiser_config)] = await follower.check()

    assert (address, message.daily_budget, message.version) == (address_of(CAMPAIGN, ADVERTISER), 2 * UNIT, 1)
    assert (advertiser, advertiser_config.daily_budget, advertiser_config.version) == (
        make_advertiser_address(ADVERTISER),
        10_000,
        2,
    )
    assert await follower.check() == []


async def test_a_change_is_not_sent_to_an_actor_without_a_state(follower: Follower) -> None:
    await follower.check()

    await follower.change("campaign", "budget_daily_paisa = 200")

    assert await follower.check() == []


async def test_a_change_is_sent_to_an_actor_that_was_just_configured_and_has_no_state_yet(
    follower: Follower,
) -> None:
    await follower.check()
    await follower.configurer.load_first_messages([address_of(CAMPAIGN, ADVERTISER)])

    await follower.change("campaign", "budget_daily_paisa = 200")

    assert [address for address, _ in await follower.check()] == [address_of(CAMPAIGN, ADVERTISER)]


async def test_a_change_during_a_restart_is_sent_at_the_next_start(follower: Follower) -> None:
    await follower.store_state(address_of(CAMPAIGN, ADVERTISER))
    await follower.check()

    await follower.change("campaign", "deleted_at = now()")
    follower.restart()

    [(_, message)] = await follower.check()
    assert message.is_running is False


async def test_all_configurations_are_sent_if_changes_were_missed(follower: Follower) -> None:
    await follower.store_state(address_of(CAMPAIGN, ADVERTISER))
    await follower.store_state(make_advertiser_address(ADVERTISER))
    await follower.check()

    await follower.change("campaign", "budget_daily_paisa = 200")
    await follower.change("campaign", "budget_daily_paisa = 300")
    await follower.pool.execute("DELETE FROM catalog_changes WHERE version = 1")

    assert {address.kind for address, _ in await follower.check()} == {"campaign", "advertiser"}
    assert await follower.check() == []


async def test_all_configurations_are_sent_if_the_catalog_version_went_back(follower: Follower) -> None:
    await follower.store_state(address_of(CAMPAIGN, ADVERTISER))
    await follower.valkey.set(VERSION_KEY, 99)

    assert len(await follower.check()) == 1
    assert await follower.valkey.get(VERSION_KEY) == b"0"


async def test_a_change_that_found_a_full_mailbox_is_sent_at_the_next_check(follower: Follower) -> None:
    await follower.store_state(address_of(CAMPAIGN, ADVERTISER))
    await follower.check()
    await follower.change("campaign", "budget_daily_paisa = 200")

    follower.host.has_room = False
    with pytest.raises(UnavailableError):
        await follower.check()
    follower.host.has_room = True

    assert len(await follower.check()) == 1


@pytest.mark.parametrize("has_notice", [True, False])
async def test_a_raised_budget_reaches_its_campaign_within_a_second(
    pool: Pool, valkey: Valkey, monkeypatch: pytest.MonkeyPatch, *, has_notice: bool
) -> None:
    assert catalog_follower.POLL_SECONDS <= 1
    if has_notice:
        monkeypatch.setattr(catalog_follower, "POLL_SECONDS", 3_600.0)
    await insert_campaign(pool, daily=100)
    stage = Stage(pool, valkey, clock=SystemClock())
    async with stage.running(), Process(valkey).listening() as process:
        await process.ask_for_lease(want=Micros(5 * UNIT))
        await wait_for_subscriber(valkey, NOTICE_CHANNEL)
        if has_notice:
            async with Catalog(pool, valkey).write() as write:
                await write.connection.execute("UPDATE campaigns SET budget_daily_paisa = 300")
                write.touch(IndexedNoun.CAMPAIGN, await write.connection.fetchval("SELECT id FROM campaigns"))
        else:
            async with pool.acquire() as connection, connection.transaction():
                await connection.execute("UPDATE campaigns SET budget_daily_paisa = 300")
                await connection.execute("UPDATE catalog_version SET version = 1")
                await connection.execute(
                    "INSERT INTO catalog_changes (version, noun, noun_key) SELECT 1, 'campaign', id FROM campaigns"
                )
        async with asyncio.timeout(60):
            while True:
                state = await stage.state()
                if state is not None and state.config is not None and state.config.daily_budget == 3 * UNIT:
                    break
                await asyncio.sleep(0.005)


async def test_a_follower_continues_after_the_catalog_was_unavailable(pool: Pool, valkey: Valkey) -> None:
    await insert_campaign(pool, daily=100)
    stage = Stage(pool, valkey)
    async with stage.running() as budget_actors, Process(valkey).listening() as process:
        await process.ask_for_lease()
        await pool.execute("ALTER TABLE catalog_version RENAME TO catalog_version_away")
        await asyncio.sleep(0.7)
        await pool.execute("ALTER TABLE catalog_version_away RENAME TO catalog_version")
        async with Catalog(pool, valkey).write() as write:
            write.touch(IndexedNoun.CAMPAIGN, await write.connection.fetchval("SELECT id FROM campaigns"))

        await eventually(lambda: budget_actors.follower.notified == 1, seconds=30)
