"""What the catalog says reaches campaigns and advertisers: at their first message, and soon after it changes."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adloom.budgets.addresses import advertiser_address
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
    somebody_listens,
)
from tests.support.eventually import eventually
from tests.support.rows import an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Told:
    """A host that only listens."""

    def __init__(self) -> None:
        self.messages: list[tuple[Address, Any]] = []
        self.has_room = True

    def tell(self, address: Address, message: Any) -> bool:
        if self.has_room:
            self.messages.append((address, message))
        return self.has_room

    def send_durably(self, address: Address, message: Any) -> "asyncio.Future[None]":
        raise NotImplementedError(address, message)

    def take(self) -> list[tuple[Address, Any]]:
        taken, self.messages = self.messages, []
        return taken


class Follower:
    """A follower that looks when it is told to."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.pool = pool
        self.valkey = valkey
        self.host = Told()
        self.catalog = BudgetCatalog(pool)
        self.introductions = EntityConfigurer(self.catalog, ManualClock(NOON), hold_seconds=300)
        self.follower = self.next_life()

    def next_life(self) -> CatalogFollower:
        self.follower = CatalogFollower(self.valkey, self.catalog, self.introductions, self.host)
        return self.follower

    async def looked(self) -> list[tuple[Address, Any]]:
        await self.follower.look()
        return self.host.take()

    async def change(self, noun: str, statement: str, *values: object) -> None:
        """Change a campaign or an advertiser, as the catalog's stores do."""
        table = f"{noun}s"
        async with Catalog(self.pool, self.valkey).write() as write:
            key = await write.connection.fetchval(
                f"UPDATE {table} SET {statement} RETURNING id",  # noqa: S608 - the test's own words
                *values,
            )
            if noun == "campaign":
                write.touch(IndexedNoun.CAMPAIGN, key)
            else:
                write.touch(IndexedNoun.ADVERTISER, key)

    async def keep(self, address: Address) -> None:
        await self.pool.execute(
            "INSERT INTO brain_states (kind, key, shard, version, format, state, changed_at) "
            "VALUES ($1, $2, 0, 1, 1, '', now())",
            *address,
        )


@pytest.fixture
async def it(pool: Pool, valkey: Valkey) -> Follower:
    await insert_advertiser(pool, budget=5_000, timezone="Asia/Kolkata")
    await insert_campaign(pool, advertiser=ADVERTISER, daily=100, total=700, timezone="Europe/Berlin")
    return Follower(pool, valkey)


# --- what a campaign is told


def a_payer(**fields: Any) -> AdvertiserRow:
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


def configured(row: CampaignRow) -> ConfigureCampaign:
    return build_campaign_config(row, version=1, hold_seconds=300, now=NOON)


@pytest.mark.parametrize(
    ("fields", "is_running"),
    [
        ({}, True),
        ({"status": "draft"}, False),
        ({"status": "paused"}, False),
        ({"status": "ended"}, False),
        ({"status": "cancelled"}, False),
        ({"is_deleted": True}, False),
        ({"advertiser": a_payer(is_deleted=True)}, False),
        ({"advertiser": a_payer()}, True),
        ({"ends_at": NOON}, False),
        ({"ends_at": NOON + HOUR}, True),
        # It begins at the second, whoever has told us: leases are taken ahead of that.
        ({"starts_at": NOON + HOUR}, True),
        ({"status": "scheduled", "starts_at": NOON + HOUR}, True),
        ({"status": "scheduled", "starts_at": NOON - HOUR, "ends_at": NOON}, False),
        ({"status": "scheduled"}, False),
    ],
)
def test_a_campaign_runs_while_it_may_serve_now_or_once_it_begins(
    fields: dict[str, Any], *, is_running: bool
) -> None:
    assert configured(a_row(**fields)).is_running is is_running


@pytest.mark.parametrize(
    ("payer", "timezone", "is_allotted"),
    [
        (None, "Europe/Berlin", False),
        (a_payer(timezone="Asia/Kolkata"), "Asia/Kolkata", False),
        (a_payer(timezone="Asia/Kolkata", daily_budget_paisa=0), "Asia/Kolkata", True),
        (a_payer(timezone="No/Where", daily_budget_paisa=1), "UTC", True),
        (a_payer(daily_budget_paisa=1, is_deleted=True), "UTC", False),
    ],
)
def test_its_day_and_whether_it_needs_an_allotment_are_its_payers(
    payer: AdvertiserRow | None, timezone: str, *, is_allotted: bool
) -> None:
    config = configured(a_row(advertiser=payer))

    assert (config.timezone, config.is_allotted) == (timezone, is_allotted)


def test_budgets_are_told_in_micros_and_none_is_none() -> None:
    config = configured(a_row(budget_daily_paisa=100))

    assert (config.daily_budget, config.total_budget) == (UNIT, None)
    assert build_advertiser_config(a_payer(daily_budget_paisa=0), version=1).daily_budget == Micros(0)


async def test_who_becomes_active_is_told_what_the_catalog_says(it: Follower) -> None:
    campaign, advertiser = address_of(CAMPAIGN, ADVERTISER), advertiser_address(ADVERTISER)
    stranger = address_of(an_id(7))

    told = await it.introductions.load_first_messages([campaign, advertiser, stranger])

    assert told == {
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


async def test_a_campaign_is_not_introduced_under_an_address_that_is_not_its_own(it: Follower) -> None:
    assert (
        await it.introductions.load_first_messages([address_of(CAMPAIGN), address_of(CAMPAIGN, an_id(2))])
        == {}
    )


# --- what it is told later


async def test_a_change_is_told_once_to_whom_it_concerns_and_who_has_a_state(it: Follower) -> None:
    await it.keep(address_of(CAMPAIGN, ADVERTISER))
    await it.keep(advertiser_address(ADVERTISER))
    assert await it.looked() == []

    await it.change("campaign", "budget_daily_paisa = 200")
    [(address, message)] = await it.looked()
    await it.change("advertiser", "daily_budget_paisa = 1")
    [(payer, payers)] = await it.looked()

    assert (address, message.daily_budget, message.version) == (address_of(CAMPAIGN, ADVERTISER), 2 * UNIT, 1)
    assert (payer, payers.daily_budget, payers.version) == (advertiser_address(ADVERTISER), 10_000, 2)
    assert await it.looked() == []


async def test_who_has_no_state_hears_of_it_with_its_first_message(it: Follower) -> None:
    await it.looked()

    await it.change("campaign", "budget_daily_paisa = 200")

    assert await it.looked() == []


async def test_who_was_introduced_a_moment_ago_is_told_although_it_has_no_state_yet(it: Follower) -> None:
    await it.looked()
    await it.introductions.load_first_messages([address_of(CAMPAIGN, ADVERTISER)])

    await it.change("campaign", "budget_daily_paisa = 200")

    assert [address for address, _ in await it.looked()] == [address_of(CAMPAIGN, ADVERTISER)]


async def test_what_was_changed_while_nobody_followed_is_told_at_the_next_start(it: Follower) -> None:
    await it.keep(address_of(CAMPAIGN, ADVERTISER))
    await it.looked()

    await it.change("campaign", "deleted_at = now()")
    it.next_life()

    [(_, message)] = await it.looked()
    assert message.is_running is False


async def test_what_was_changed_too_long_ago_to_know_is_told_to_everyone(it: Follower) -> None:
    await it.keep(address_of(CAMPAIGN, ADVERTISER))
    await it.keep(advertiser_address(ADVERTISER))
    await it.looked()

    await it.change("campaign", "budget_daily_paisa = 200")
    await it.change("campaign", "budget_daily_paisa = 300")
    await it.pool.execute("DELETE FROM catalog_changes WHERE version = 1")

    assert {address.kind for address, _ in await it.looked()} == {"campaign", "advertiser"}
    assert await it.looked() == []


async def test_a_catalog_that_went_back_is_told_to_everyone(it: Follower) -> None:
    await it.keep(address_of(CAMPAIGN, ADVERTISER))
    await it.valkey.set(VERSION_KEY, 99)

    assert len(await it.looked()) == 1
    assert await it.valkey.get(VERSION_KEY) == b"0"


async def test_what_there_was_no_room_for_is_told_at_the_next_look(it: Follower) -> None:
    await it.keep(address_of(CAMPAIGN, ADVERTISER))
    await it.looked()
    await it.change("campaign", "budget_daily_paisa = 200")

    it.host.has_room = False
    with pytest.raises(UnavailableError):
        await it.looked()
    it.host.has_room = True

    assert len(await it.looked()) == 1


@pytest.mark.parametrize("has_notice", [True, False])
async def test_raising_a_budget_reaches_a_campaign_within_a_second(
    pool: Pool, valkey: Valkey, *, has_notice: bool
) -> None:
    await insert_campaign(pool, daily=100)
    stage = Stage(pool, valkey, clock=SystemClock())
    async with stage.running(), Process(valkey).listening() as process:
        await process.leased(want=Micros(5 * UNIT))
        await somebody_listens(valkey, NOTICE_CHANNEL)
        clock = asyncio.get_running_loop().time
        began_at = clock()
        if has_notice:
            async with Catalog(pool, valkey).write() as write:
                await write.connection.execute("UPDATE campaigns SET budget_daily_paisa = 300")
                write.touch(IndexedNoun.CAMPAIGN, await write.connection.fetchval("SELECT id FROM campaigns"))
        else:
            await pool.execute("UPDATE campaigns SET budget_daily_paisa = 300")
            await pool.execute("UPDATE catalog_version SET version = 1")
            await pool.execute(
                "INSERT INTO catalog_changes (version, noun, noun_key) SELECT 1, 'campaign', id FROM campaigns"
            )
        async with asyncio.timeout(5):
            while True:
                state = await stage.state()
                if state is not None and state.config is not None and state.config.daily_budget == 3 * UNIT:
                    break
                await asyncio.sleep(0.005)
        seconds = clock() - began_at

    assert seconds < (0.3 if has_notice else 1.0)


async def test_a_follower_lives_on_where_the_catalog_is_away(pool: Pool, valkey: Valkey) -> None:
    await insert_campaign(pool, daily=100)
    stage = Stage(pool, valkey)
    async with stage.running() as budget_actors, Process(valkey).listening() as process:
        await process.leased()
        await pool.execute("ALTER TABLE catalog_version RENAME TO catalog_version_away")
        await asyncio.sleep(0.7)
        await pool.execute("ALTER TABLE catalog_version_away RENAME TO catalog_version")
        async with Catalog(pool, valkey).write() as write:
            write.touch(IndexedNoun.CAMPAIGN, await write.connection.fetchval("SELECT id FROM campaigns"))

        await eventually(lambda: budget_actors.follower.told == 1, seconds=2)
