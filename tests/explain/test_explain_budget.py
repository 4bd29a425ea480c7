"""Which budget keeps a campaign from being offered, found from the states of the budget actors."""

from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import msgspec
import pytest

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.kinds import make_advertiser_kind, make_campaign_kind
from adloom.budgets.messages import ConfigureAdvertiser, ConfigureCampaign, LeaseUsage, SpendReport
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros
from adloom.explain.budget import find_missing_budget
from adloom.explain.placement.verdict import explain_placement
from adloom.explain.reasons import RequestFacts
from adloom.runtime.actors.actor import find_shard
from adloom.runtime.postgres import Pool
from adloom.schedule.pace_control import PaceState
from adloom.schedule.pacing import PacingStrategy
from adloom.serving.index.rows import PlacementRows
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.catalogs import NOON
from tests.support.contexts import a_context
from tests.support.control import Client, ControlPlane
from tests.support.for_each import for_each
from tests.support.rows import a_placement_row, an_assignment_row

CAMPAIGN, ADVERTISER = CampaignId(UUID(int=7)), AdvertiserId(UUID(int=1))
COST = Micros(1_000)
CHANCE = Random(1)  # noqa: S311 - nothing here depends on it

INSERT_STATE = """
    INSERT INTO brain_states (kind, key, shard, version, format, state, changed_at)
    VALUES ($1, $2, $3, 1, 1, $4, $5)
"""


def a_campaign(*, offers: int = 0, now: datetime = NOON, **fields: Any) -> Any:
    """Return a campaign's state after a process has made some offers and has used up its lease."""
    config = ConfigureCampaign(
        version=1,
        campaign_id=CAMPAIGN,
        advertiser_id=None,
        is_running=True,
        daily_budget=Micros(4 * COST),
        total_budget=None,
        pacing=PacingStrategy.ACCELERATED,
        timezone="UTC",
        hold_seconds=300,
        is_allotted=False,
    )
    kind = make_campaign_kind()
    state = kind.new(make_campaign_address(CAMPAIGN, None).key, now)
    state, _ = kind.step(state, msgspec.structs.replace(config, **fields), now, CHANCE)
    second = int(now.timestamp())
    for report in range(1, offers + 1):
        lease = max(state.leases, default=0)
        given = ((second, COST),) if report > 1 else ()
        usage = LeaseUsage(session=1, report=report, lease=lease, given=given, want=COST, cost=COST)
        state, _ = kind.step(state, usage, now, CHANCE)
    last = LeaseUsage(
        session=1,
        report=offers + 1,
        lease=max(state.leases, default=0),
        given=((second, COST),) if offers else (),
        want=Micros(0),
        cost=COST,
    )
    return kind.step(state, last, now, CHANCE).state


@for_each(
    ("fields", "reason"),
    [
        ({"offers": 3}, None),
        ({"offers": 4}, "daily_budget"),
        ({"offers": 4, "total_budget": Micros(4 * COST)}, "total_budget"),
        ({"offers": 2, "daily_budget": None, "total_budget": Micros(2 * COST)}, "total_budget"),
        ({"daily_budget": Micros(COST // 2)}, "daily_budget"),
        ({"offers": 9, "daily_budget": None}, None),
        (
            {"daily_budget": Micros(24 * COST), "pacing": PacingStrategy.SMOOTH, "offers": 14},
            "pacing",
        ),
    ],
)
def test_the_missing_budget_is_named(fields: dict[str, Any], reason: str | None) -> None:
    assert find_missing_budget(a_campaign(**fields), None, cost=COST, now=NOON) == reason


def test_a_budget_is_available_again_the_next_day_and_when_holds_expire() -> None:
    spent = a_campaign(offers=4)

    assert find_missing_budget(spent, None, cost=COST, now=NOON + timedelta(seconds=299)) == "daily_budget"
    assert find_missing_budget(spent, None, cost=COST, now=NOON + timedelta(seconds=301)) is None
    assert find_missing_budget(spent, None, cost=COST, now=NOON + timedelta(hours=12)) is None


def test_a_budget_that_a_process_still_has_in_a_lease_is_not_missing() -> None:
    kind = make_campaign_kind()
    usage = LeaseUsage(session=2, report=1, lease=0, want=Micros(9 * COST), cost=COST)

    state, _ = kind.step(a_campaign(offers=3), usage, NOON, CHANCE)

    assert find_missing_budget(state, None, cost=COST, now=NOON) is None


@pytest.mark.parametrize(("allotted", "reason"), [(0, None), (5, "advertiser_budget")])
def test_an_advertisers_budget_is_missing_when_all_of_it_is_allotted(
    allotted: int, reason: str | None
) -> None:
    kind = make_advertiser_kind()
    payer = kind.new(str(ADVERTISER), NOON)
    config = ConfigureAdvertiser(
        version=1, advertiser_id=ADVERTISER, is_active=True, daily_budget=Micros(5 * COST), timezone="UTC"
    )
    payer, _ = kind.step(payer, config, NOON, CHANCE)
    report = SpendReport(
        campaign_id=CampaignId(UUID(int=8)),
        incarnation=1,
        sequence=1,
        day=NOON.date(),
        spent_by_day={},
        committed=Micros(allotted * COST),
        target=Micros(allotted * COST),
        cost=COST,
    )
    payer, _ = kind.step(payer, report, NOON, CHANCE)
    campaign = a_campaign(advertiser_id=ADVERTISER, is_allotted=True)

    assert find_missing_budget(campaign, payer, cost=COST, now=NOON) == reason
    assert find_missing_budget(campaign, None, cost=COST, now=NOON) is None


@pytest.mark.parametrize("name", ["daily_budget", "total_budget", "advertiser_budget", "pacing"])
def test_a_candidate_without_a_budget_is_removed_with_a_reason_and_a_remedy(name: str) -> None:
    rows = PlacementRows(a_placement_row(), [an_assignment_row(campaign_key=7)])

    facts = RequestFacts(context=a_context(), counts={}, budgets={7: name}, now=NOON)
    [verdict] = explain_placement(rows, facts)

    assert (verdict.outcome, verdict.removed_by) == ("removed", name)
    assert "budget" in verdict.reason
    assert verdict.change


def test_the_winner_that_its_pace_leaves_out_of_some_requests_says_so() -> None:
    rows = PlacementRows(a_placement_row(), [an_assignment_row(campaign_key=7)])
    facts = RequestFacts(context=a_context(), counts={}, budgets={}, now=NOON, throttles={7: 0.864})
    [verdict] = explain_placement(rows, facts)
    [often] = explain_placement(rows, msgspec.structs.replace(facts, throttles={7: 0.004}))

    assert (verdict.outcome, verdict.removed_by) == ("won", None)
    assert verdict.reason.startswith("The banner fills a slot. To spread its daily budget over the traffic")
    assert "leaves out 86% of its offers now" in verdict.reason
    assert often.reason == "The banner fills a slot."


async def test_a_campaign_that_its_pace_leaves_out_of_some_requests_is_limited(
    admin: Client, pool: Pool
) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=10_000, bidAmount=5)
    placement = await admin.make_placement()
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, await admin.make_banner())
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    state = a_busy_state(charged=1, held=0, leased=5, daily_budget=Micros(100_000_000))
    await keep(pool, campaign, msgspec.structs.replace(state, pace=PaceState(throttle=0.4)))

    found = (await admin.get(f"/admin/campaigns/{campaign['id']}/delivery")).json()

    [pacing] = [one for one in found["checks"] if one["name"] == "pacing"]
    assert pacing["state"] == "limits"
    assert "leaves out 40% of its offers now" in pacing["sentence"]


async def test_the_explanation_reads_the_stored_states_of_budget_actors(
    admin: Client, control: ControlPlane, pool: Pool
) -> None:
    placement = await admin.make_placement(slug="home")
    campaign = await admin.make_campaign(budgetDailyPaisa=100, bidAmount=1_000, pacingStrategy="Accelerated")
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, await admin.make_banner())
    before = await admin.get("/banners/explain/home")

    state = a_campaign(offers=4, now=control.clock.now())
    address = make_campaign_address(CampaignId(UUID(campaign["id"])), None)
    await pool.execute(
        INSERT_STATE, *address, find_shard(address), make_campaign_kind().encode(state), control.clock.now()
    )
    after = await admin.get("/banners/explain/home")

    assert [one["outcome"] for one in before.json()["candidates"]] == ["won"]
    assert [one["removedBy"] for one in after.json()["candidates"]] == ["daily_budget"]
