"""A campaign's bidding over HTTP: multiplier, guard, decisions of the day, and the shadow of other strategies."""

from datetime import date, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.bidding.state import BidState
from adloom.bidding.window import BidDecision, BidStrategy
from adloom.budgets.bid_model import BidCounts, BidRow, BidsDecided, FoundCounts, MultiplierRequest
from adloom.budgets.bids.store import BidCountStore, load_decisions, write_decisions
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.runtime.postgres import Pool
from tests.budgets.builders import UNIT, CampaignBench, a_campaign, a_usage
from tests.budgets.test_campaign_bids import a_request
from tests.stats.test_spend_routes import keep
from tests.support.builders import NOON, Json
from tests.support.control import Client

TODAY = date(2026, 11, 15)
BID = {"bidAmount": 5, "budgetDailyPaisa": 10_000}


async def read(client: Client, campaign: Json) -> Json:
    answer = await client.get(f"/admin/campaigns/{campaign['id']}/bidding")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def decide(pool: Pool, campaign: Json, *decisions: BidDecision) -> None:
    """Let a campaign's actor take decisions, and store what it keeps."""
    campaign_id = CampaignId(UUID(campaign["id"]))
    bench = CampaignBench(
        a_campaign(campaign_id=campaign_id, has_bid=True, bid_strategy=BidStrategy.FLEET, target=UNIT),
        now=NOON - timedelta(minutes=15 * len(decisions)),
    )
    rows: list[BidRow] = []
    lease = 0
    for report, decision in enumerate(decisions, 1):
        bench.take(a_usage(report=report, lease=lease), after=timedelta(minutes=15))
        lease = 1
        [request] = bench.published(MultiplierRequest)
        lease = next(iter(bench.state.leases))
        bench.take(
            BidsDecided(
                day=request.day,
                window=request.window.window,
                strategy=request.strategy,
                decision=decision,
                memory=BidState(window=request.window.window),
                shadows={BidStrategy.PACER: BidDecision(multiplier=0.25, reason="pacer")},
                counts=BidCounts(1000 * report, 10 * report, report),
                counted_before=BidCounts(),
            )
        )
        rows += bench.recorded(BidRow)
    async with pool.acquire() as connection, connection.transaction():
        await write_decisions(connection, rows)
    await keep(pool, campaign, bench.state)


async def test_a_campaign_that_was_never_offered_bids_in_full(admin: Client) -> None:
    answer = await read(admin, await admin.make_campaign(**BID))

    assert (answer["strategy"], answer["multiplier"], answer["decidedAt"]) == ("fixed", 1, None)
    assert answer["nextAt"] == "2026-11-15T12:15:00Z"
    assert answer["guard"]["limit"] is None
    assert answer["history"] == []
    assert (answer["plan"][0]["expectedPaisa"], answer["plan"][-1]["expectedPaisa"]) == (0, 10_000)


async def test_decisions_of_the_day_are_told_in_words_with_their_shadow(admin: Client, pool: Pool) -> None:
    campaign = await admin.make_campaign(**BID, bidStrategy="fleet", targetCpa=1)
    await decide(
        pool,
        campaign,
        BidDecision(multiplier=0.5, reason="fleet", limit=1.0),
        BidDecision(multiplier=1.4, reason="guard", limit=1.4, note="the target is below the market"),
    )

    answer = await read(admin, campaign)
    first, last = answer["history"]

    assert (answer["strategy"], answer["multiplier"]) == ("fleet", 1)
    assert answer["guard"] == {"limit": 1.4, "reason": "The strategy wanted more."}
    assert answer["note"] == "the target is below the market"
    assert "raise the bid" in answer["explanation"]
    assert answer["shadows"] == [
        {"strategy": "pacer", "multiplier": 0.25, "reason": "pacer", "brought": None}
    ]
    assert (first["multiplier"], first["reason"], last["wanted"]) == (0.5, "fleet", 1.4)
    assert (last["impressions"], last["clicks"], last["conversions"]) == (2000, 20, 2)
    assert first["explanation"].startswith("Fleet bids 50% of the bid")
    assert first["brought"] == {"spentPaisa": 0, "impressions": 1000, "clicks": 10, "conversions": 1}
    assert last["brought"] is None, "the window lasts"
    # Half of the bid, where cost is assumed to rise like the power 2.5 and so impressions like 1.5.
    [shadow] = first["shadows"]
    assert shadow["brought"]["impressions"] == 353.55
    fleet, pacer = answer["totals"]
    assert (fleet["strategy"], fleet["windows"], fleet["brought"]["impressions"]) == ("fleet", 1, 1000)
    assert (pacer["strategy"], pacer["windows"], pacer["brought"]["clicks"]) == ("pacer", 1, 3.54)
    assert fleet["low"] is fleet["high"] is None, "it was counted"
    assert pacer["low"]["clicks"] < 3.54 < pacer["high"]["clicks"]
    assert answer["isMeasured"] is False


async def test_decisions_before_yesterday_are_forgotten_with_the_first_of_a_day(pool: Pool) -> None:
    row = BidRow(
        campaign_id=CampaignId(UUID(int=5)),
        day=TODAY - timedelta(days=2),
        at=NOON - timedelta(days=2),
        window=3,
        strategy=BidStrategy.PACER,
        multiplier=0.5,
        wanted=0.5,
        reason="pacer",
        limit=None,
        note=None,
        spent=Micros(7),
        impressions=1,
        clicks=0,
        conversions=0,
        shadows={},
        is_first=True,
    )
    today = msgspec.structs.replace(row, day=TODAY, at=NOON)
    async with pool.acquire() as connection, connection.transaction():
        await write_decisions(connection, [row, row])
        before = await load_decisions(connection, row.campaign_id, row.day)
        await write_decisions(connection, [today])
        gone = await load_decisions(connection, row.campaign_id, row.day)
        [kept] = await load_decisions(connection, row.campaign_id, TODAY)

    assert (len(before), gone) == (1, [])
    assert msgspec.structs.replace(kept, is_first=True) == today


COUNTED: Final = """
    INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions, clicks)
    SELECT $2, 1, 1, id, 900, 40 FROM campaigns WHERE public_id = $1
"""
REPORTED: Final = """
    INSERT INTO events.conversions (
        campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, received_at,
        value_micros, by_key, is_counted, entry_ms, entry_seq
    )
    SELECT id, 'order', 1, 1, gen_random_uuid(), 0, $2, $2, $2, 0, $3 = 'with a key', true, 1, 0
      FROM campaigns WHERE public_id = $1
"""


async def test_conversions_are_expected_where_the_advertiser_asks_for_them_or_reports_them(
    admin: Client, pool: Pool
) -> None:
    campaigns = [
        await admin.make_campaign(**BID, passesClickId=passes) for passes in (False, True, False, False)
    ]
    ids = [CampaignId(UUID(campaign["id"])) for campaign in campaigns]
    for campaign_id in ids:
        await pool.execute(COUNTED, campaign_id, NOON)
    await pool.execute(REPORTED, ids[2], NOON, "with a key")
    # Whoever has clicked can report one.
    await pool.execute(REPORTED, ids[3], NOON, "without")

    found = await BidCountStore(pool).read(
        [msgspec.structs.replace(a_request(), campaign_id=one, counts_since=NOON) for one in ids]
    )

    counts = BidCounts(900, 40, 0)
    assert found == {
        ids[0]: FoundCounts(counts, has_conversions=False),
        ids[1]: FoundCounts(counts, has_conversions=True),
        ids[2]: FoundCounts(counts, has_conversions=True),
        ids[3]: FoundCounts(counts, has_conversions=False),
    }


async def test_a_campaign_without_events_has_no_counts(admin: Client, pool: Pool) -> None:
    campaign_id = CampaignId(UUID((await admin.make_campaign(**BID, passesClickId=True))["id"]))
    asked = msgspec.structs.replace(a_request(), campaign_id=campaign_id, counts_since=NOON)

    found = await BidCountStore(pool).read([asked])

    assert found == {campaign_id: FoundCounts(BidCounts(0, 0, 0), has_conversions=True)}
