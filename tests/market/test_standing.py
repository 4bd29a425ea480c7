"""Which campaigns cannot be shown now: from the totals of the money ledger, caps, dates and schedules."""

import asyncio
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.campaign.demand import CampaignDemand, CampaignReady
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.kinds import make_kinds
from adloom.budgets.messages import CampaignCounts, CampaignRestored
from adloom.budgets.transport.wire import SPEND_CHANNEL, encode_updates
from adloom.core.clock import SystemClock
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros
from adloom.market import follower
from adloom.market.demand_store import (
    CampaignBudgets,
    find_standings,
    is_capped,
    is_paced,
    is_spent,
    load_all,
    load_changes,
    load_named,
)
from adloom.market.messages import AllDemand, DemandRow
from adloom.market.store import MarketWriter
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Connection, Pool
from adloom.runtime.valkey import Valkey
from adloom.schedule.traffic_shape import TrafficShape
from tests.support.control import Client, admin, control
from tests.support.eventually import becomes, eventually
from tests.support.pages import insert_creative

__all__ = ["admin", "control"]

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
CAMPAIGN, PAYER = UUID(int=1), UUID(int=2)
TODAY = date(2026, 11, 17)


def some_budgets(**fields: Any) -> CampaignBudgets:
    values: dict[str, Any] = {
        "campaign_id": CAMPAIGN, "advertiser_id": PAYER, "max_cpm": Micros(5_000_000), "daily_paisa": None,
        "total_paisa": None, "zone": "UTC", "advertiser_daily_paisa": None, **fields,
    }  # fmt: skip
    return CampaignBudgets(**values)


@pytest.mark.parametrize(
    ("budgets", "spent"),
    [
        ({"daily_paisa": 100}, 995_001),
        ({"advertiser_daily_paisa": 100}, 10**6),
        ({"total_paisa": 100}, 10**6),
    ],
    ids=["dust", "the advertiser's", "in all"],
)
def test_a_budget_is_spent_that_pays_for_no_impression(budgets: dict[str, int], spent: int) -> None:
    recent = {(CAMPAIGN, TODAY): spent, (PAYER, TODAY): spent}

    assert is_spent(some_budgets(**budgets), recent, {CAMPAIGN: spent}, NOON)


@pytest.mark.parametrize(
    ("budgets", "spent"),
    [({}, 10**9), ({"daily_paisa": 100}, 0), ({"daily_paisa": 100}, 995_000)],
    ids=["no budget", "nothing spent", "one left"],
)
def test_a_budget_that_pays_for_one_more_is_not_spent(budgets: dict[str, int], spent: int) -> None:
    assert not is_spent(some_budgets(**budgets), {(CAMPAIGN, TODAY): spent}, {CAMPAIGN: spent}, NOON)


def test_a_day_is_that_of_its_zone() -> None:
    recent = {(CAMPAIGN, TODAY): 10**6}

    assert is_spent(some_budgets(daily_paisa=100, zone="UTC"), recent, {}, NOON)
    assert not is_spent(some_budgets(daily_paisa=100, zone="Pacific/Kiritimati"), recent, {}, NOON)


@pytest.mark.parametrize("has_payer", [True, False])
async def test_a_campaign_spends_the_days_of_its_advertiser(
    admin: Client, pool: Pool, *, has_payer: bool
) -> None:
    early, late = "Pacific/Kiritimati", "Etc/GMT+12"  # It is never the same day there.
    payer = await admin.make_advertiser(timezone=early)
    zone = {"timezone": late, "advertiserId": payer["id"]} if has_payer else {"timezone": early}
    paid, banner = {"bidType": "cpm", "bidAmount": 5, "categories": ["483"]}, await admin.make_banner()
    campaign = await admin.make_campaign(budgetDailyPaisa=100, **paid, **zone)
    await insert_creative(pool, banner["id"], campaign["id"])
    await pool.execute("UPDATE campaigns SET status = 'active'")
    await pool.execute(
        "INSERT INTO spend_days (kind, id, day, spent_micros)"
        " VALUES ('campaign', $1, (now() AT TIME ZONE $2)::date, 1000000)",
        campaign["id"],
        early,
    )

    async with pool.acquire() as connection:
        changes = await load_all(connection)

    assert [one.is_spent for one in changes.bidding] == [True]


@pytest.mark.parametrize(
    ("budgets", "spent", "before", "expected"),
    [
        (
            {"daily_paisa": 1_000, "is_smooth": True},
            4_800_000,
            False,
            True,
        ),  # At noon half of it is to be spent.
        ({"daily_paisa": 1_000, "is_smooth": True}, 4_600_000, False, False),
        ({"daily_paisa": 1_000, "is_smooth": True}, 4_600_000, True, True),
        ({"daily_paisa": 1_000, "is_smooth": True}, 4_400_000, True, False),
        ({"daily_paisa": 1_000}, 4_800_000, True, False),
        ({"total_paisa": 1_000, "is_smooth": True}, 4_800_000, True, False),
    ],
)
def test_who_has_spent_what_was_planned_is_paced_until_it_is_behind(
    budgets: dict[str, Any], spent: int, *, before: bool, expected: bool
) -> None:
    recent = {(CAMPAIGN, TODAY): spent}

    assert is_paced(some_budgets(**budgets), recent, NOON, TrafficShape(), was_paced=before) == expected


async def test_who_was_paced_is_read_from_the_demand_of_before(admin: Client, pool: Pool) -> None:
    paid = {"bidType": "cpm", "bidAmount": 5, "categories": ["483"], "pacingStrategy": "Smooth"}
    campaign = await admin.make_campaign(budgetDailyPaisa=1_000, timezone="UTC", **paid)
    await insert_creative(pool, (await admin.make_banner())["id"], campaign["id"])
    await pool.execute("UPDATE campaigns SET status = 'active'")
    day = "SELECT (0.92 * 10000000 * greatest(0.01, extract(epoch FROM now() AT TIME ZONE 'UTC')::bigint % 86400 / 86400.0))"
    await pool.execute(
        "INSERT INTO spend_days (kind, id, day, spent_micros)"
        f" SELECT 'campaign', $1, (now() AT TIME ZONE 'UTC')::date, ({day})::bigint",
        campaign["id"],
    )

    async def load() -> CampaignDemand:
        async with pool.acquire() as connection:
            [demand] = (await load_all(connection)).bidding
        return demand

    before = await load()
    row = DemandRow(before.campaign_id, before.version, msgspec.structs.replace(before, is_paced=True))
    await PostgresStateStore(pool, MarketWriter(), SystemClock()).commit([], [row])
    assert (before.is_paced, (await load()).is_paced) == (False, True)


async def test_who_targets_visitors_or_caps_what_they_see_is_restricted(admin: Client, pool: Pool) -> None:
    paid = {"bidType": "cpm", "bidAmount": 5, "categories": ["483"]}
    plain, targeted, paused, capped = [await admin.make_campaign(name=str(one), **paid) for one in range(4)]
    for campaign in (plain, targeted, paused, capped):
        await insert_creative(pool, (await admin.make_banner(title=campaign["name"]))["id"], campaign["id"])
    await pool.execute("UPDATE campaigns SET status = 'active'")
    for campaign, is_active in ((targeted, True), (paused, False)):
        rule = {"ruleType": "country", "operator": "in", "value": ["DE"], "isActive": is_active}
        await admin.post("/admin/targeting-rules", json={"campaignId": campaign["id"], **rule})
    await pool.execute(
        'INSERT INTO frequency_caps (public_id, banner_id, max_impressions_per_user, "window")'
        " SELECT gen_random_uuid(), id, 3, 'Day' FROM banners WHERE title = '3'"
    )

    async with pool.acquire() as connection:
        bidding = (await load_all(connection)).bidding

    restricted = {one.campaign_id for one in bidding if one.is_restricted}
    assert restricted == {UUID(targeted["id"]), UUID(capped["id"])}


async def test_what_begins_later_or_whose_schedule_is_closed_takes_no_place(
    admin: Client, pool: Pool
) -> None:
    paid = {"bidType": "cpm", "bidAmount": 5, "categories": ["483"]}
    later = "2099-01-01T00:00:00Z"
    now, begins = (
        await admin.make_campaign(name="Now", **paid),
        await admin.make_campaign(name="Later", **paid),
    )
    plain, closed = await admin.make_banner(), await admin.make_banner(publishAt=later)
    for campaign in (now, begins):
        for banner in (plain, closed):
            await insert_creative(pool, banner["id"], campaign["id"])
    await pool.execute("UPDATE campaigns SET status = 'active' WHERE name = 'Now'")
    await pool.execute(
        "UPDATE campaigns SET status = 'scheduled', starts_at = '2099-01-01' WHERE name = 'Later'"
    )

    async with pool.acquire() as connection:
        changes = await load_all(connection)

    found = {str(one.campaign_id): one for one in changes.bidding}
    assert {key: one.is_spent for key, one in found.items()} == {now["id"]: False, begins["id"]: True}
    creatives = {str(one.banner_id): one.is_closed for one in found[now["id"]].creatives}
    assert creatives == {plain["id"]: False, closed["id"]: True}


async def test_what_a_strategy_bids_now_is_known_of_bids_that_it_lowers(admin: Client, pool: Pool) -> None:
    paid = {"bidType": "cpm", "bidAmount": 5, "categories": ["483"], "budgetDailyPaisa": 1_000}
    fixed, lowered = [await admin.make_campaign(bidStrategy=one, **paid) for one in ("fixed", "pacer")]
    for campaign in (fixed, lowered):
        await insert_creative(pool, (await admin.make_banner())["id"], campaign["id"])
    await pool.execute("UPDATE campaigns SET status = 'active'")
    for minutes, multiplier in ((30, 0.9), (15, 0.37)):
        await pool.execute(
            "INSERT INTO bid_decisions (campaign_id, day, at, bid_window, strategy, multiplier, wanted, reason,"
            " spent_micros, impressions, clicks, conversions, shadows)"
            " SELECT public_id, now()::date, now() - $1 * interval '1 minute', 1, 'pacer', $2, $2, 'pacer', 0, 0, 0, 0, '{}'"
            "   FROM campaigns",
            minutes,
            multiplier,
        )

    async with pool.acquire() as connection:
        bidding = (await load_all(connection)).bidding

    bids = {str(one.campaign_id): one.bid_now for one in bidding}
    assert bids == {fixed["id"]: None, lowered["id"]: 1_500_000}


async def test_what_is_over_takes_no_place(admin: Client, pool: Pool) -> None:
    campaign = await admin.make_campaign(bidType="cpm", bidAmount=5, categories=["483"])
    await insert_creative(pool, (await admin.make_banner())["id"], campaign["id"])
    await pool.execute(
        "UPDATE campaigns SET status = 'active', starts_at = '2026-01-01', ends_at = now() - interval '1 second'"
    )

    async with pool.acquire() as connection:
        changes = await load_all(connection)

    assert [one.is_spent for one in changes.bidding] == [True]


async def test_a_banner_of_a_deleted_advertiser_bids_no_more(admin: Client, pool: Pool) -> None:
    maker = await admin.make_advertiser()
    campaign = await admin.make_campaign(bidType="cpm", bidAmount=5, categories=["483"])
    own, other = await admin.make_banner(), await admin.make_banner(advertiserId=maker["id"])
    for banner in (own, other):
        await insert_creative(pool, banner["id"], campaign["id"])
    await pool.execute("UPDATE campaigns SET status = 'active'")
    async with pool.acquire() as connection:
        before = await load_all(connection)
    deleted = await admin.delete(f"/admin/advertisers/{maker['id']}", headers={"If-Match": "*"})
    await pool.execute("UPDATE banners SET deleted_at = NULL")

    async with pool.acquire() as connection:
        after = await load_changes(connection, since=before.version)

    assert deleted.status_code == 204
    assert [[str(one.banner_id) for one in demand.creatives] for demand in after.bidding] == [[own["id"]]]


@pytest.mark.parametrize(
    ("caps", "counts", "expected"),
    [
        ({"impression_cap": 10}, (9, 500), False),
        ({"impression_cap": 10}, (10, 0), True),
        ({"click_cap": 3}, (500, 2), False),
        ({"click_cap": 3}, (0, 3), True),
        ({}, (500, 500), False),
    ],
)
def test_a_campaign_that_has_reached_a_cap_takes_no_place(
    caps: dict[str, int], counts: tuple[int, int], *, expected: bool
) -> None:
    counted = CampaignCounts(impressions=counts[0], clicks=counts[1], until="1-0")

    assert is_capped(some_budgets(**caps), CampaignState(counted=counted)) == expected
    assert not is_capped(some_budgets(**caps), None)


async def test_totals_are_read_from_the_money_ledger(pool: Pool) -> None:
    await pool.execute(
        """
        INSERT INTO spend_days (kind, id, day, spent_micros)
        VALUES ('campaign', $1, (now() AT TIME ZONE 'UTC')::date, 1000000), ('campaign', $2, '2020-01-01', 1000000)
        """,
        CAMPAIGN,
        UUID(int=3),
    )
    asked = [
        some_budgets(daily_paisa=100),
        some_budgets(campaign_id=UUID(int=3), daily_paisa=100),
        some_budgets(campaign_id=UUID(int=4), total_paisa=0),
    ]
    async with pool.acquire() as connection:
        assert (await find_standings(connection, asked)).spent == {CAMPAIGN, UUID(int=4)}


@pytest.mark.parametrize(("spent_window", "is_spent_again"), [(0, False), (1_000_000, True)])
async def test_a_budget_that_was_reset_is_spent_again_in_its_new_window(
    pool: Pool, spent_window: int, *, is_spent_again: bool
) -> None:
    asked = some_budgets(daily_paisa=100)
    async with pool.acquire() as connection:
        today = (await connection.fetchval("SELECT now() AT TIME ZONE 'UTC'")).date()
        await connection.execute(
            "INSERT INTO spend_days (kind, id, day, spent_micros) VALUES ('campaign', $1, $2, 1500000)",
            CAMPAIGN,
            today,
        )
        assert (await find_standings(connection, [asked])).spent == {CAMPAIGN}
        state = CampaignState(day=today, window=2, spent_window=Micros(spent_window))
        [kind] = [one for one in make_kinds() if one.name == "campaign"]
        await connection.execute(
            """
            INSERT INTO brain_states (kind, key, shard, version, format, state, changed_at)
            VALUES ('campaign', $1, 0, 1, $2, $3, now())
            """,
            make_campaign_address(CampaignId(CAMPAIGN), AdvertiserId(PAYER)).key,
            kind.format,
            kind.encode(state),
        )
        await connection.execute(
            """
            INSERT INTO audit_entries (at, subject, role, noun, noun_id, action, changes)
            VALUES (now(), 'x', 'admin', 'budget', $1, 'reset', '{}')
            """,
            str(CAMPAIGN),
        )

        assert (await find_standings(connection, [asked])).spent == ({CAMPAIGN} if is_spent_again else set())


class Heard:
    """A host that keeps which campaigns it is told of."""

    def __init__(self) -> None:
        self.campaigns: list[str] = []
        self.is_told = False  # Of all campaigns.

    def tell(self, _: object, message: object) -> bool:
        self.is_told |= isinstance(message, AllDemand)
        if isinstance(message, CampaignReady):
            self.campaigns.append(str(message.demand.campaign_id))
        return True


async def test_a_budget_that_is_restored_while_others_are_read_is_read_next(
    admin: Client, pool: Pool, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At midnight those of all campaigns are, within a second; all campaigns are read once a minute only."""
    one, other = [await admin.make_campaign(bidType="cpm", bidAmount=5, categories=["483"]) for _ in range(2)]
    for campaign in (one, other):
        await insert_creative(pool, (await admin.make_banner())["id"], campaign["id"])
    await pool.execute("UPDATE campaigns SET status = 'active'")

    async def restore(campaign: dict[str, Any]) -> None:
        news = CampaignRestored(campaign_id=CampaignId(UUID(campaign["id"])), at=NOON)
        await valkey.publish(SPEND_CHANNEL, encode_updates([news]))

    async def load_and_hear(connection: Connection, *named: Any) -> Any:
        found = await load_named(connection, *named)
        if named[0] == {UUID(one["id"])}:
            await restore(other)
            await asyncio.sleep(0.2)  # It is there by then.
        return found

    monkeypatch.setattr(follower, "load_named", load_and_hear)
    heard, stop = Heard(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(follower.MarketFollower(pool, valkey, heard).run(stop))  # pyright: ignore[reportArgumentType] - it only tells
        await eventually(lambda: heard.is_told, seconds=30)
        await becomes(lambda: _is_heard(valkey), seconds=30)
        await restore(one)
        await eventually(lambda: heard.campaigns == [one["id"], other["id"]], seconds=20)
        stop.set()


async def _is_heard(valkey: Valkey) -> bool:
    return bool((await valkey.pubsub_numsub(SPEND_CHANNEL))[0][1])
