"""A campaign's bidding in the console."""

from datetime import UTC

from adloom.bidding.window import BidDecision
from adloom.console.pages.campaigns.bidding import collect_shadows, find_spent, name_time
from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from tests.console.visitor import Visitor
from tests.stats.test_bidding_routes import BID, decide
from tests.support.builders import Json
from tests.support.control import ControlPlane


def test_spend_is_known_until_the_last_decision() -> None:
    history = [
        {"at": "2026-11-15T10:00:00Z", "spentPaisa": 5},
        {"at": "2026-11-15T11:00:00Z", "spentPaisa": 9},
    ]
    moments = [f"2026-11-15T{hour:02}:00:00Z" for hour in (9, 10, 11, 12)]

    assert find_spent(history, moments) == [0, 5, 9, None]
    assert find_spent([], moments) == [None] * 4
    assert name_time("2026-11-15T10:00:00Z", UTC) == "10:00"


def test_a_shadow_that_was_not_computed_is_a_gap() -> None:
    history: list[Json] = [
        {"shadows": [{"strategy": "pacer", "multiplier": 1.5}]},
        {"shadows": []},
    ]

    assert collect_shadows(history) == {"pacer": [1.0, None]}


async def test_a_campaign_shows_its_multipliers_reasons_and_shadow(
    console: ControlPlane, ann: Visitor, pool: Pool
) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        campaign = await admin.make_campaign(**BID, bidStrategy="fleet", targetCpa=1)
        without = await admin.make_campaign()
    await decide(
        pool,
        campaign,
        BidDecision(multiplier=0.5, reason="fleet", limit=1.0),
        BidDecision(multiplier=0.5, reason="fleet", limit=1.0, note="the target is below the market"),
    )

    shown = (await ann.get(f"/console/campaigns/{campaign['id']}?tab=bidding")).text
    empty = (await ann.get(f"/console/campaigns/{without['id']}?tab=bidding")).text

    for text in (
        "Fleet bids 50% of the bid",
        "What other strategies would have bid",
        "on the tab What if",
        "What the day has brought, and would have brought",
        "Fleet (bids)",
        "is assumed and not measured",
        "The target is below the market.",
        "Spend along the day",
    ):
        assert text in shown, text
    assert "It has no bid" in empty


async def test_a_site_shows_its_usual_day(console: ControlPlane, ann: Visitor) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        site = await admin.make_site()

    shown = (await ann.get(f"/console/sites/{site['id']}?tab=traffic")).text

    assert "The usual day" in shown
    assert "Requests today" in shown
