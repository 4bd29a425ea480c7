"""The pages of budgets, auctions, reports and jobs over HTTP, for each role."""

import json
import re
from collections.abc import AsyncGenerator
from datetime import timedelta
from html import unescape
from uuid import UUID, uuid4

import pytest

from adloom.catalog.schedule_sync import QUEUE
from adloom.core.caller import Role
from adloom.runtime.jobs.queue import open_queue
from adloom.runtime.postgres import Pool
from tests.console.visitor import Visitor, make_person
from tests.events.builders import CAMPAIGN, an_auction
from tests.ops.test_job_routes import fail_job
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.auctions import apply_auctions
from tests.support.builders import NOON
from tests.support.control import Client, ControlPlane
from tests.support.eventually import eventually
from tests.support.for_each import for_each
from tests.support.jobs import working

EMPTY = {
    "/console/budgets": "No campaign has a daily budget",
    "/console/budgets/advertisers": "There are no advertisers yet",
    "/console/auctions": "No auctions yet",
    "/console/reports": "Nothing was counted here",
    "/console/reports/ads": "There are no advertisers yet",
    "/console/jobs": "nothing has failed",
    "/console/why": "Choose a placement",
    "/console/why?campaign=": "Which campaign does not deliver?",
    "/console/why?auction=": "Which auction?",
}


NOT_FOR_PUBLISHERS = [
    "/console/budgets",
    "/console/budgets/advertisers",
    "/console/auctions",
    "/console/reports/ads",
    "/console/jobs",
    "/console/why?campaign=",
]


@pytest.fixture
async def api(console: ControlPlane) -> AsyncGenerator[Client]:
    async with console.acting_as(Role.ADMIN) as client:
        yield client


@for_each(("path", "words"), EMPTY.items())
async def test_an_empty_page_says_what_to_do(ann: Visitor, path: str, words: str) -> None:
    page = await ann.get(path)

    assert page.status_code == 200
    assert words in page.text


@pytest.mark.parametrize("role", Role)
async def test_every_role_can_use_the_pages_that_it_sees(role: Role, console: ControlPlane) -> None:
    await make_person(console, "bob@example.com", role)
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")

        pages = {path: await bob.get(path) for path in EMPTY}

    allowed = {path: page for path, page in pages.items() if page.status_code == 200}
    assert {path: page.status_code for path, page in pages.items() if path not in allowed} == (
        dict.fromkeys(NOT_FOR_PUBLISHERS, 403) if role is Role.PUBLISHER else {}
    )
    assert [path for path, page in allowed.items() if "This could not be loaded" in page.text] == []


async def test_budgets_are_listed_with_what_is_spent_held_and_left(
    ann: Visitor, api: Client, pool: Pool
) -> None:
    campaign = await api.make_campaign(name="Spring", budgetDailyPaisa=10_000)
    await keep(pool, campaign, a_busy_state(charged=1234, held=3, leased=2))

    page = await ann.get("/console/budgets")

    assert "Spring" in page.text
    assert "12.34" in page.text
    # Phones leave out columns of the class "wide".
    assert re.search(r'class=\\?"num\\?">Left<', unescape(page.text)) is not None
    assert f"/console/budgets/campaigns/{campaign['id']}" in page.text


async def test_the_day_of_a_budget_is_drawn_and_only_an_admin_can_reset_it(
    ann: Visitor, console: ControlPlane, api: Client, pool: Pool
) -> None:
    advertiser = await api.make_advertiser(name="Meadow", dailyBudgetPaisa=9_000)
    campaign = await api.make_campaign(name="Spring", budgetDailyPaisa=10_000, advertiserId=advertiser["id"])
    await keep(pool, campaign, a_busy_state(charged=1234, held=0, leased=0))
    await make_person(console, "bob@example.com", Role.ADVERTISER, account_id=UUID(advertiser["id"]))
    path = f"/console/budgets/campaigns/{campaign['id']}"

    page = await ann.get(path)
    of_advertiser = await ann.get(f"/console/budgets/advertisers/{advertiser['id']}")

    assert "Spend against plan" in page.text
    assert "Reset today" in page.text
    assert "Meadow" in of_advertiser.text
    assert "90.00" in of_advertiser.text
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")
        own = await bob.get(path)
        assert "12.34" in own.text
        assert "Reset today" not in own.text


async def test_auctions_are_listed_with_their_prices(ann: Visitor, pool: Pool) -> None:
    held = an_auction(uuid4())
    await apply_auctions(pool, held, an_auction(uuid4()))

    page = await ann.get("/console/auctions")
    nothing = await ann.get("/console/auctions?outcome=not_won")
    own = await ann.get(f"/console/auctions?campaign={CAMPAIGN}&outcome=won&placement=nowhere")
    odd = await ann.get("/console/auctions?campaign=x&outcome=y")
    detail = await ann.get(f"/console/auctions/{held.auction_id}")

    assert "Price against eCPM" in page.text
    assert "7.01" in page.text
    assert "100.0%" in page.text
    assert "2 in all" in page.text
    assert "2 with a winner" in page.text
    assert "No auction matches" in nothing.text
    assert "No auction matches" in own.text
    assert odd.status_code == 200
    assert "A cent more than the second eCPM, which was 7.00." in detail.text


@pytest.mark.parametrize(
    ("hours", "first"), [("1", "11-15 11:00"), ("24", "11-14 12:00"), ("168", "11-08 12:00")]
)
async def test_auctions_by_hour_cover_the_whole_period(
    ann: Visitor, pool: Pool, hours: str, first: str
) -> None:
    held = [an_auction(uuid4(), held_at=NOON - timedelta(hours=ago)) for ago in (0, 0, 1, 100)]
    await apply_auctions(pool, *held)

    page = (await ann.get(f"/console/auctions?hours={hours}")).text

    labels, counts = (
        json.loads(found) for found in re.findall(r'"(?:category|bar)","data":(\[[^]]*])', page)
    )
    assert (labels[0], labels[-1], len(labels)) == (first, "11-15 12:00", int(hours) + 1)
    assert counts[-2:] == [1, 2]
    assert sum(counts) == (4 if hours == "168" else 3)


async def test_a_report_groups_by_the_dimensions_of_its_address(
    ann: Visitor, api: Client, pool: Pool
) -> None:
    placement, banner = await api.make_placement(label="Front page"), await api.make_banner(title="Tulips")
    campaign = await api.make_campaign(name="Spring")
    await EventWriter(pool).write(
        seen(banner, placement, campaign, at=NOON, country="DE"),
        seen(banner, placement, campaign, at=NOON, country="FR"),
        clicked(banner, placement, campaign, at=NOON, country="FR"),
    )

    by_thing = await ann.get("/console/reports?from=2026-11-15&to=2026-11-15&by=campaign,banner,placement")
    by_delivery = await ann.get("/console/reports?from=2026-11-15&to=2026-11-15&by=delivery,device")
    by_country = await ann.get("/console/reports?from=2026-11-15&to=2026-11-15&by=hour,country&metric=clicks")

    for name in ("Spring", "Tulips", "Front page", "50.00%"):
        assert name in by_thing.text
    assert re.findall(r'"category","data":(\[[^]]*])', by_delivery.text) == ['["Direct"]']
    assert "11-15 12:00" in by_country.text
    assert "Germany" in by_country.text
    assert "Not known by country or device" in by_country.text


async def test_a_report_has_the_time_zone_of_the_account(ann: Visitor, api: Client, pool: Pool) -> None:
    placement, banner = await api.make_placement(), await api.make_banner(title="Tulips")
    campaign = await api.make_campaign(name="Spring", timezone="Europe/Berlin")
    await EventWriter(pool).write(seen(banner, placement, campaign, at=NOON))
    person = (await api.get("/admin/accounts")).json()["items"][0]
    await api.patch(f"/admin/accounts/{person['id']}", json={"timeZone": "Pacific/Auckland"})

    report = await ann.get("/console/reports?from=2026-11-16&to=2026-11-16&by=hour")
    as_named = await ann.get("/console/reports?from=2026-11-15&to=2026-11-15&by=hour&zone=UTC")
    schedule = await ann.get(f"/console/campaigns/{campaign['id']}?tab=schedule")
    account = await ann.get("/console/account")

    assert "11-16 01:00" in report.text, "noon of UTC is one o'clock of the next day"
    assert "Days and hours are those of Pacific/Auckland" in report.text
    assert "11-15 12:00" in as_named.text
    assert "Hours of Pacific/Auckland" in schedule.text
    assert "Pacific/Auckland" in account.text


async def test_a_report_shows_the_error_of_the_api(ann: Visitor) -> None:
    page = await ann.get("/console/reports?from=2020-01-01&to=2026-11-15&by=hour")

    assert "must be less than 400 days before" in page.text


async def test_ad_statistics_link_a_campaign_to_its_ad_sets(ann: Visitor, api: Client) -> None:
    seller = (await api.make_advertiser(name="Meadow"))["id"]
    path = "/api/ads-manager"
    account = await api.made(f"{path}/accounts", {"name": "Meta", "sellerId": seller})
    sell_page = await api.made(f"{path}/sellpages", {"name": "Shop", "sellerId": seller})
    campaign = await api.made(
        f"{path}/campaigns",
        {"name": "Abroad", "adAccountId": account["id"], "sellpageId": sell_page["id"], "budget": 5, "sellerId": seller},
    )  # fmt: skip
    await api.made(f"{path}/adsets", {"name": "Set one", "campaignId": campaign["id"], "sellerId": seller})

    campaigns = await ann.get("/console/reports/ads")
    sets = await ann.get(f"/console/reports/ads?level=adsets&campaignId={campaign['id']}&sellerId={seller}")

    assert "Abroad" in campaigns.text
    assert f"campaignId={campaign['id']}" in campaigns.text
    assert "Set one" in sets.text


async def test_a_failed_job_is_shown_first_and_can_be_retried(ann: Visitor, redis_url: str) -> None:
    async with open_queue(QUEUE, redis_url) as queue, working(QUEUE, redis_url, fail_job) as worker:
        await queue.put("work", job_id="one")
        await eventually(lambda: worker.dead == 1, seconds=30)

    page = await ann.get("/console/jobs")

    assert "1 failed" in page.text
    assert "one is hopeless" in page.text
    assert "Try again" in page.text


async def test_an_advertiser_sees_the_jobs_of_its_own_statistics(console: ControlPlane, api: Client) -> None:
    advertiser = await api.make_advertiser()
    await api.post("/api/ads-manager/sync", json={"sellerId": advertiser["id"], "date": "2026-11-14"})
    await make_person(console, "bob@example.com", Role.ADVERTISER, account_id=UUID(advertiser["id"]))

    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")
        page = await bob.get("/console/jobs")

    assert "2026-11-14 to 2026-11-14" in page.text
    assert "Ad sets" in page.text
