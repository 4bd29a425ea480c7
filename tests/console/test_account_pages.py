"""What an advertiser and a publisher find in the console: their words, their menu, and where to begin."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from adloom.console.pages.first_campaign.steps import SAMPLE, SAMPLE_SLUG
from adloom.console.shell import ENTRIES, list_entries
from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from adloom.runtime.telemetry.heartbeat import Reading
from adloom.runtime.valkey import Valkey
from adloom.schedule.pacing import PacingStrategy
from tests.console.visitor import Visitor, make_person
from tests.stats.event_writer import EventWriter, seen
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.builders import NOON
from tests.support.control import Client, ControlPlane
from tests.support.heartbeats import publish_heartbeat


@pytest.fixture
async def api(console: ControlPlane) -> AsyncGenerator[Client]:
    async with console.acting_as(Role.ADMIN) as client:
        yield client


@asynccontextmanager
async def logged_in(console: ControlPlane, role: Role, account_id: str | None) -> AsyncGenerator[Visitor]:
    await make_person(
        console, "bob@example.com", role, account_id=None if account_id is None else UUID(account_id)
    )
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")
        yield bob


async def test_what_advertisers_spend_is_the_revenue_of_a_publisher(
    console: ControlPlane, ann: Visitor, api: Client, pool: Pool
) -> None:
    publisher = await api.make_publisher()
    placement = await api.make_placement(publisherId=publisher["id"])
    event = seen(await api.make_banner(), placement, at=NOON - timedelta(hours=2))
    await EventWriter(pool).write(event)
    path = "/console/reports?metric=spendPaisa"

    of_house = (await ann.get(path)).text
    async with logged_in(console, Role.PUBLISHER, publisher["id"]) as bob:
        own = (await bob.get(path)).text

    assert ("Spend" in of_house, "Revenue" in of_house) == (True, False)
    assert ("Spend" in own, "Revenue" in own) == (False, True)
    assert "Impressions, clicks and revenue, by" in own


async def test_an_advertisers_overview_has_its_campaigns_with_spend_and_pace(
    console: ControlPlane, api: Client, pool: Pool
) -> None:
    advertiser = await api.make_advertiser()
    spring = await api.make_campaign(
        name="Spring", advertiserId=advertiser["id"], budgetDailyPaisa=100, bidAmount=1
    )
    await api.patch(f"/admin/campaigns/{spring['id']}/activate")
    await api.make_campaign(name="Autumn", advertiserId=advertiser["id"], budgetTotalPaisa=12_300)
    await api.make_campaign(name="Somebody else's")
    await keep(pool, spring, a_busy_state(charged=12, held=0, leased=0, pacing=PacingStrategy.SMOOTH))

    async with logged_in(console, Role.ADVERTISER, advertiser["id"]) as bob:
        page = (await bob.get("/console")).text

    assert "Your campaigns" in page
    assert page.index("Spring") < page.index("Autumn"), "those that run come first"
    assert "Somebody else" not in page
    assert "0.12 of 1.00" in page
    assert "0.00 of 123.00" in page
    assert "20% of what may be spent by now" in page
    assert "All " not in page.partition("Your campaigns")[2].partition("What needs attention")[0]


@pytest.mark.parametrize(
    ("role", "words", "link"),
    [
        (Role.ADMIN, "asks for them in four steps", "/console/first-campaign"),
        (Role.ADVERTISER, "You have no campaign yet", "/console/campaigns/new"),
        (Role.PUBLISHER, "You have no placement yet", "/console/placements/new"),
    ],
)
async def test_an_overview_with_nothing_points_to_the_first_step(
    role: Role, words: str, link: str, console: ControlPlane
) -> None:
    async with logged_in(console, role, None) as bob:
        page = (await bob.get("/console")).text
        first = await bob.get(link)

    assert words in page
    assert link in page
    assert first.status_code == 200


async def test_the_overview_points_to_the_place_that_the_sample_keeps_free_until_it_is_taken(
    ann: Visitor, api: Client
) -> None:
    campaign, banner = await api.make_campaign(), await api.make_banner()
    words, link = "keeps a place free for your first ad", "/console/first-campaign"

    without = (await ann.get("/console")).text
    place = await api.make_placement(slug=SAMPLE_SLUG, pageContext=SAMPLE)
    free = (await ann.get("/console")).text
    await api.link(campaign, place)
    await api.assign(campaign, place, banner)
    taken = (await ann.get("/console")).text

    assert [words in page for page in (without, free, taken)] == [False, True, False]
    assert free.count(link) > taken.count(link)


async def test_a_campaign_that_does_not_run_is_behind_nothing(ann: Visitor, api: Client, pool: Pool) -> None:
    campaign = await api.make_campaign(budgetDailyPaisa=100, bidAmount=1)
    await api.patch(f"/admin/campaigns/{campaign['id']}/activate")
    await keep(pool, campaign, a_busy_state(charged=12, held=0, leased=0, pacing=PacingStrategy.SMOOTH))
    pages = ("/console/budgets", f"/console/budgets/campaigns/{campaign['id']}")

    running = [(await ann.get(path)).text for path in pages]
    await api.patch(f"/admin/campaigns/{campaign['id']}/pause")
    paused = [(await ann.get(path)).text for path in pages]

    assert ["behind the line" in page for page in running] == [True, True]
    assert ["behind the line" in page for page in paused] == [False, False]
    assert ["does not run now" in page for page in paused] == [True, True]


def test_the_menu_of_an_account_has_only_what_it_can_use() -> None:
    paths = {entry.path for entry in ENTRIES}

    menus = {role: [one.label for one in list_entries(role, registered=paths)] for role in Role}

    assert {"Advertisers", "Publishers", "Jobs"} <= set(menus[Role.ADMIN]) & set(menus[Role.VIEWER])
    for role in (Role.ADVERTISER, Role.PUBLISHER):
        assert {"Advertisers", "Publishers", "Jobs"}.isdisjoint(menus[role])
        assert menus[role].count("My record") == 1
    assert "My record" not in menus[Role.ADMIN]
    account_id = uuid4()
    own = {one.path for one in list_entries(Role.PUBLISHER, registered=paths, account_id=account_id)}
    assert f"/console/publishers/{account_id}" in own
    assert "/console/publishers" not in own  # A list of oneself.


async def test_rules_about_countries_that_nobody_can_tell_are_explained(
    ann: Visitor, api: Client, valkey: Valkey
) -> None:
    placement, campaign, banner = (
        await api.make_placement(),
        await api.make_campaign(),
        await api.make_banner(),
    )
    await api.link(campaign, placement)
    await api.assign(campaign, placement, banner)
    await api.patch(f"/admin/campaigns/{campaign['id']}/activate")
    await api.make_rule(campaign, ruleType="country", operator="in", value=["DE"])
    of_reader, of_campaign = (
        f"/console/why?placement={placement['slug']}",
        f"/console/why?campaign={campaign['id']}",
    )
    paths = (of_reader, f"{of_reader}&country=FR", of_campaign)

    await publish_heartbeat(valkey, "delivery-1", Reading(index_version=1), geoip_file="")
    without = [(await ann.get(path)).text for path in paths]
    await publish_heartbeat(valkey, "delivery-1", Reading(index_version=1), geoip_file="countries.mmdb")
    with_file = [(await ann.get(path)).text for path in paths]

    assert ["ADLOOM_GEOIP_FILE" in page for page in without] == [True, False, True]
    assert not any("ADLOOM_GEOIP_FILE" in page for page in with_file)
