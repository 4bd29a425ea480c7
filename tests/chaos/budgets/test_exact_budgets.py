"""Law 2 on real processes: four of them and 200 readers at once buy what the budget pays for, and nothing more."""

import asyncio
import time
from datetime import UTC, datetime

import pytest

from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import MoneyKind
from tests.chaos.budgets.crowd import Offer
from tests.chaos.budgets.market import PRICE_MICROS, PRICE_PAISA, READ_SECONDS, Market, awaited
from tests.support.days import these_days
from tests.support.product import adloom, wait_until

pytestmark = pytest.mark.process

READERS = 200
OFFERED_SECONDS_MAX = 60.0
CHARGED_SECONDS_MAX = 60.0
# A second, as tests/serving shows on virtual time; more where the machine is busy with other tests.
CHANGED_SECONDS_MAX = 30.0
WATCHED_SECONDS = 2.0  # Without an offer, after it has stopped.


@pytest.mark.parametrize("times", [1, 2])
async def test_a_price_of_a_thousand_budgets_buys_one_impression_and_of_half_of_that_two(
    market: Market, times: int
) -> None:
    slug = f"own-{times}"
    campaign = market.an_ad(slug, budgetDailyPaisa=PRICE_PAISA * times)

    await exactly(times, market, [slug], [campaign])


@pytest.mark.parametrize("times", [1, 2])
async def test_an_advertisers_budget_over_ten_campaigns_buys_as_many(market: Market, times: int) -> None:
    payer = market.a_payer(dailyBudgetPaisa=PRICE_PAISA * times)
    slugs = [f"shared-{times}-{number}" for number in range(10)]
    campaigns = market.ads(slugs, advertiserId=payer)

    await exactly(times, market, slugs, campaigns)


async def test_a_contextual_budget_of_one_at_a_thousand_buys_exactly_one_impression(market: Market) -> None:
    path, campaign = market.a_page("contextual-one", budgetDailyPaisa=2 * PRICE_PAISA)
    readers, offers = [path] * READERS, list[Offer]()
    await market.leased(campaign, seconds=OFFERED_SECONDS_MAX)
    ends_at = time.monotonic() + OFFERED_SECONDS_MAX
    while not offers:
        assert time.monotonic() < ends_at
        offers += await market.filled(readers)
    offers += await market.filled(readers)
    assert len(offers) == 1

    market.seen(offers, times=3)
    charges = await market.charged([campaign], count=1, seconds=CHARGED_SECONDS_MAX)
    offers += await market.filled(readers)

    assert len(offers) == 1
    assert [(one.request_id, one.amount) for one in charges] == [(offers[0].request_id, 2 * PRICE_MICROS)]


async def exactly(times: int, market: Market, slugs: list[str], campaigns: list[str]) -> None:
    """Check that so many offers are made and charged, before and after they are seen."""
    readers = slugs * (READERS // len(slugs))
    await market.leased(*campaigns, seconds=OFFERED_SECONDS_MAX)
    offers = await market.offered(readers, count=times, seconds=OFFERED_SECONDS_MAX)
    offers += await market.asked(readers)
    assert len(offers) == times

    market.seen(offers, times=3)
    charges = await market.charged(campaigns, count=times, seconds=CHARGED_SECONDS_MAX)
    offers += await market.asked(readers)

    assert len(offers) == times
    assert {(one.request_id, one.slot, one.amount) for one in charges} == {
        (offer.request_id, offer.slot, PRICE_MICROS) for offer in offers
    }
    assert await market.charges(campaigns) == charges


@pytest.mark.parametrize("budget", ["budgetDailyPaisa", "budgetTotalPaisa", "dailyBudgetPaisa"])
async def test_a_raised_budget_releases_serving_soon(market: Market, budget: str) -> None:
    slug = f"raised-{budget}".lower()
    is_advertisers = budget == "dailyBudgetPaisa"
    once, twice = {budget: PRICE_PAISA}, {budget: 2 * PRICE_PAISA}
    payer = market.a_payer(**once) if is_advertisers else None
    campaign = market.an_ad(slug, **({"advertiserId": payer} if payer else once))
    await market.offered([slug], count=1, seconds=OFFERED_SECONDS_MAX)
    assert await market.asked([slug] * 50) == []

    if is_advertisers:
        market.changed(f"/admin/advertisers/{payer}/budget", twice, method="PUT")
    else:
        market.changed(f"/admin/campaigns/{campaign}", twice)
    offers = await market.offered([slug] * 4, count=1, seconds=CHANGED_SECONDS_MAX)

    assert len(offers + await market.asked([slug] * READERS)) == 1


async def test_a_budget_lowered_below_what_is_spent_stops_soon(market: Market) -> None:
    campaign = market.an_ad("lowered", budgetDailyPaisa=1_000_000)
    market.seen(await market.offered(["lowered"], count=4, seconds=OFFERED_SECONDS_MAX))
    await market.charged([campaign], count=4, seconds=CHARGED_SECONDS_MAX)

    await stops_in_time(
        market, "lowered", f"/admin/campaigns/{campaign}", {"budgetDailyPaisa": 3 * PRICE_PAISA}
    )


async def test_a_paused_campaign_stops_soon_and_goes_on_soon_again(market: Market) -> None:
    campaign = market.an_ad("paused", budgetDailyPaisa=1_000_000)
    await market.offered(["paused"], count=4, seconds=OFFERED_SECONDS_MAX)

    await stops_in_time(market, "paused", f"/admin/campaigns/{campaign}/pause")
    market.changed(f"/admin/campaigns/{campaign}/activate")

    await market.offered(["paused"] * 4, count=1, seconds=CHANGED_SECONDS_MAX)


async def stops_in_time(
    market: Market, slug: str, path: str, change: dict[str, object] | None = None
) -> None:
    """Change something, and check that readers are offered nothing any more before long."""
    before = await market.asked([slug] * 20)
    changed_at = market.changed(path, change)
    assert before, "it was being served"
    offered_at = changed_at
    while time.monotonic() < offered_at + WATCHED_SECONDS:
        assert offered_at < changed_at + CHANGED_SECONDS_MAX, f"{slug} is still offered"
        if await market.asked([slug] * 4):
            offered_at = time.monotonic()
        await asyncio.sleep(READ_SECONDS)


async def test_where_clicks_are_paid_for_they_are_charged_as_far_as_the_budget_pays_for_them(
    market: Market,
) -> None:
    # An offer holds a part of a click only, so more are offered than clicks can be paid for: here two.
    campaign = market.an_ad("clicks", bidType="cpc", bidAmount=0.3, budgetDailyPaisa=60)
    offers = await market.offered(["clicks"] * 20, count=5, seconds=OFFERED_SECONDS_MAX)

    market.seen(offers[:5])
    for offer in offers[:3]:
        market.clicked(offer)
    # The ledger is in order: when a click is charged, the impressions before it have been looked at.
    entries = await awaited(
        lambda: market.entries(campaign),
        lambda found: sum(one.kind != MoneyKind.RELEASE for one in found) >= 3,
        seconds=CHARGED_SECONDS_MAX,
    )

    assert [(one.kind, one.request_id, one.amount) for one in entries if one.kind != MoneyKind.RELEASE] == [
        (kind, offer.request_id, 300_000)
        for kind, offer in zip(["charge", "charge", "over_budget"], offers, strict=False)
    ]
    await stops_being_offered(market, "clicks")
    wait_until(lambda: spent(market, campaign) == 60, seconds=CHARGED_SECONDS_MAX, what="statistics show it")


def spent(market: Market, campaign: str) -> int:
    query = {**these_days(), "campaignId": campaign}
    answer = market.admin.get("/admin/stats/banners", params=query).raise_for_status()
    return answer.json()["totals"]["spendPaisa"]


async def stops_being_offered(market: Market, slug: str) -> None:
    ends_at = time.monotonic() + CHANGED_SECONDS_MAX
    while await market.asked([slug] * 50):
        assert time.monotonic() < ends_at, f"{slug} is still offered"
    assert await market.asked([slug] * READERS) == []


@pytest.mark.parametrize("price", [{"bidAmount": None}, {}, {"bidType": "cpc", "bidAmount": 0.1}])
async def test_an_impression_cap_allows_as_many_offers_over_all_processes(
    market: Market, price: dict[str, object]
) -> None:
    slug = f"capped-{len(price)}"
    campaign = market.an_ad(slug, impressionCap=7, **price)
    offers = await market.offered([slug] * 20, count=7, seconds=OFFERED_SECONDS_MAX)
    offers += await market.asked([slug] * READERS)
    assert len(offers) == 7, "what is held counts"

    market.seen(offers)
    await awaited(
        lambda: market.state(campaign),
        lambda state: state is not None and _count_seen(state) == 7,
        seconds=CHARGED_SECONDS_MAX,
    )

    assert await market.asked([slug] * READERS) == []
    market.changed(f"/admin/campaigns/{campaign}", {"impressionCap": 9})
    offers = await market.offered([slug] * 4, count=2, seconds=CHANGED_SECONDS_MAX)
    assert len(offers + await market.asked([slug] * READERS)) == 2


def _count_seen(state: CampaignState) -> int:
    return len(state.seen) + (state.counted.impressions if state.counted is not None else 0)


def test_the_doctor_finds_that_the_books_agree(market: Market) -> None:
    today = datetime.now(UTC).date().isoformat()

    proof = adloom("doctor", "--money", "--day", today, "--data-dir", str(market.product.data_dir))
    whole = adloom("doctor", "--data-dir", str(market.product.data_dir))

    assert (proof.code, "The books agree." in proof.out) == (0, True), proof
    assert "the books agree" in whole.out, whole
