"""The pages of the catalog over HTTP: every tab of every page, for every role that can see it."""

from uuid import UUID

import pytest

from adloom.console.pages.banners import BANNERS
from adloom.console.pages.placements import PLACEMENTS
from adloom.core.caller import Role
from tests.console.visitor import Visitor, make_person
from tests.support.builders import Json
from tests.support.control import ControlPlane
from tests.support.for_each import for_each

LISTS = ("campaigns", "banners", "placements", "sites", "advertisers", "publishers")
PARTS = {
    "campaigns": ("overview", "banners", "targeting", "schedule", "settings", "history"),
    "banners": ("look", "where", "schedule", "caps", "history"),
    "placements": ("overview", "ads", "settings", "history"),
    "sites": ("overview", "pages", "crawls", "placements", "settings", "history"),
    "advertisers": ("campaigns", "settings", "history"),
    "publishers": ("placements", "sites", "statement", "settings", "history"),
}
FAILED = "This could not be loaded"


async def one_of_each(console: ControlPlane) -> dict[str, Json]:
    async with console.acting_as(Role.ADMIN) as admin:
        advertiser, publisher = await admin.make_advertiser(), await admin.make_publisher()
        site = await admin.make_site(publisherId=publisher["id"])
        placement = await admin.make_placement(publisherId=publisher["id"], siteId=site["id"])
        banner = await admin.make_banner(
            advertiserId=advertiser["id"],
            recurrenceWindowStart="09:00",
            recurrenceWindowEnd="17:00",
            mediaVariants={"tablet": "https://cdn.example.com/tablet.webp"},
        )
        campaign = await admin.make_campaign(
            advertiserId=advertiser["id"], budgetDailyPaisa=1000, bidAmount=2
        )
        await admin.make_rule(campaign)
        await admin.link(campaign, placement)
        await admin.assign(campaign, placement, banner)
    return {
        "campaigns": campaign,
        "banners": banner,
        "placements": placement,
        "sites": site,
        "advertisers": advertiser,
        "publishers": publisher,
    }


async def test_a_list_shows_pictures_that_were_uploaded_and_asks_before_it_loads_those_of_others(
    console: ControlPlane, ann: Visitor
) -> None:
    uploaded = f"{console.app.state.delivery_url}/p/{'a' * 64}.png"
    async with console.acting_as(Role.ADMIN) as admin:
        await admin.make_banner(primaryImageUrl=uploaded)
        await admin.make_banner(primaryImageUrl="https://cdn.example.com/leaves.png")

    page = (await ann.get("/console/banners")).text.replace("&quot;", '"').replace('\\"', '"')

    assert f'src="{uploaded}"' in page
    assert 'data-picture="https://cdn.example.com/leaves.png"' in page
    assert 'src="https://cdn.example.com' not in page


async def test_a_page_of_a_list_that_is_no_longer_there_is_the_last_one(
    console: ControlPlane, ann: Visitor
) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        await admin.make_campaign(name="Leaves of autumn")

    page = await ann.get("/console/campaigns?page=2")

    assert "Leaves of autumn" in page.text
    assert "Nothing matches" not in page.text


@for_each("noun", LISTS)
async def test_an_empty_list_says_what_to_do(noun: str, ann: Visitor) -> None:
    page = await ann.get(f"/console/{noun}")

    assert page.status_code == 200
    assert FAILED not in page.text
    assert f"No {noun} yet" in page.text


def test_what_is_made_from_an_empty_list_of_an_owner_belongs_to_it() -> None:
    assert BANNERS.build_new_address(advertiserId="17") == "/console/banners/new?advertiser=17"
    assert PLACEMENTS.build_new_address(siteId="a&b", status="on") == "/console/placements/new?site=a%26b"
    assert BANNERS.build_new_address() == "/console/banners/new"


async def test_a_new_campaign_has_the_time_zone_of_its_advertiser(
    console: ControlPlane, ann: Visitor
) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        owner = await admin.made("/admin/advertisers", {"name": "Birch & Co", "timezone": "Europe/Oslo"})

    forms = [await ann.get(f"/console/campaigns/new{query}") for query in ("", f"?advertiser={owner['id']}")]

    # One of the choices each, and the one that is chosen.
    assert [form.text.count("Europe/Oslo") for form in forms] == [1, 2]


async def test_an_advertiser_s_new_campaign_has_its_time_zone(console: ControlPlane) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        owner = await admin.made("/admin/advertisers", {"name": "Birch & Co", "timezone": "Europe/Oslo"})
    await make_person(console, "oslo@example.com", Role.ADVERTISER, account_id=UUID(owner["id"]))

    async with Visitor(console) as visitor:
        await visitor.log_in("oslo@example.com")
        form = await visitor.get("/console/campaigns/new")

    assert form.text.count("Europe/Oslo") == 2  # One of the choices, and the one that is chosen.


async def test_the_calendar_says_whose_hours_conditions_have(console: ControlPlane, ann: Visitor) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        plain, timed = (
            await admin.make_campaign(timezone="Europe/Oslo"),
            await admin.make_campaign(timezone="Europe/Oslo"),
        )
        await admin.make_rule(timed, ruleType="hour_of_day", operator="between", value=[22, 5])

    of_plain, of_timed = [
        await ann.get(f"/console/campaigns/{one['id']}?tab=schedule") for one in (plain, timed)
    ]

    said = "as if that were Europe/Oslo, the campaign"
    assert said not in of_plain.text
    assert said in of_timed.text


async def test_the_form_of_a_banner_shows_the_variants_of_its_picture(
    console: ControlPlane, ann: Visitor
) -> None:
    banner = (await one_of_each(console))["banners"]

    page = await ann.get(f"/console/banners/{banner['id']}?tab=look")

    assert FAILED not in page.text
    assert "tablet https://cdn.example.com/tablet.webp" in page.text


async def test_every_tab_of_every_page_is_shown(console: ControlPlane, ann: Visitor) -> None:
    things = await one_of_each(console)
    addresses = [f"/console/{noun}/{things[noun]['id']}?tab={part}" for noun in LISTS for part in PARTS[noun]]
    addresses += [f"/console/{noun}/new" for noun in LISTS]
    addresses += ["/console/first-campaign"]

    for address in addresses:
        page = await ann.get(address)

        assert page.status_code == 200, address
        assert FAILED not in page.text, address


async def test_a_list_is_searched_filtered_and_sorted_by_its_address(
    console: ControlPlane, ann: Visitor
) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        for name in ("Autumn leaves", "Winter lights", "Autumn apples"):
            await admin.make_campaign(name=name)

    page = (await ann.get("/console/campaigns?search=autumn&sort=name&status=draft")).text
    none = (await ann.get("/console/campaigns?status=active")).text

    assert "Winter lights" not in page
    assert page.index("Autumn apples") < page.index("Autumn leaves")
    assert "Nothing matches" in none


@for_each("noun", LISTS)
async def test_an_unknown_item_shows_the_error_of_the_api(noun: str, ann: Visitor) -> None:
    page = await ann.get(f"/console/{noun}/01890000-0000-7000-8000-000000000000")

    assert page.status_code == 404
    assert f"There is no {noun.removesuffix('s')} with this id." in page.text


async def test_names_are_text_never_markup(console: ControlPlane, ann: Visitor) -> None:
    name = "<img src=x onerror=alert(1)>"
    async with console.acting_as(Role.ADMIN) as admin:
        campaign = await admin.make_campaign(name=name)

    for address in ("/console/campaigns", f"/console/campaigns/{campaign['id']}"):
        page = (await ann.get(address)).text

        assert "onerror=alert" in page
        assert "<img src=x" not in page
        assert "\\u003cimg src=x" not in page


async def test_a_viewer_sees_everything_and_can_change_nothing(console: ControlPlane) -> None:
    things = await one_of_each(console)
    await make_person(console, "vic@example.com", Role.VIEWER)
    async with Visitor(console) as viewer:
        await viewer.log_in("vic@example.com")
        pages = {
            f"{noun}/{part}": await viewer.get(f"/console/{noun}/{things[noun]['id']}?tab={part}")
            for noun in LISTS
            for part in PARTS[noun]
        }

    assert {page.status_code for page in pages.values()} == {200}
    for name, page in pages.items():
        assert not any(f'"{label}"' in page.text for label in ("Save", "Delete", "Pause", "Add a banner")), (
            name
        )


@pytest.mark.parametrize(
    ("role", "own", "closed"),
    [
        (Role.ADVERTISER, ("campaigns", "banners", "advertisers"), ("placements", "sites", "first-campaign")),
        (Role.PUBLISHER, ("placements", "sites", "publishers"), ("campaigns", "banners", "first-campaign")),
    ],
)
async def test_an_account_sees_only_its_own_pages(
    role: Role, own: tuple[str, ...], closed: tuple[str, ...], console: ControlPlane
) -> None:
    things = await one_of_each(console)
    await make_person(console, "bob@example.com", role)
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")
        shown = {noun: await bob.get(f"/console/{noun}") for noun in own}
        refused = {noun: await bob.get(f"/console/{noun}") for noun in closed}
        others = {noun: await bob.get(f"/console/{noun}/{things[noun]['id']}") for noun in own}

    assert {page.status_code for page in shown.values()} == {200}
    assert {page.status_code for page in refused.values()} == {403}
    assert {page.status_code for page in others.values()} == {404}


@pytest.mark.parametrize(
    ("role", "nouns"),
    [
        (Role.ADVERTISER, ("campaigns", "banners", "advertisers")),
        (Role.PUBLISHER, ("placements", "sites", "publishers")),
    ],
)
async def test_an_account_can_open_every_tab_of_its_own_pages(
    role: Role, nouns: tuple[str, ...], console: ControlPlane
) -> None:
    things = await one_of_each(console)
    account_id = UUID(things[f"{role.value}s"]["id"])
    await make_person(console, "bob@example.com", role, account_id=account_id)
    addresses = [f"/console/{noun}/{things[noun]['id']}?tab={part}" for noun in nouns for part in PARTS[noun]]
    addresses += [f"/console/{noun}/new" for noun in nouns[:2]]
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")
        for address in addresses:
            page = await bob.get(address)

            assert page.status_code == 200, address
            assert FAILED not in page.text, address


async def test_the_preview_is_sandboxed_and_only_we_can_frame_it(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        page = await visitor.get("/console/preview")
        scripts = [await visitor.get(f"/console/preview/{name}.js") for name in ("stage", "tag")]

    policy = page.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "frame-ancestors 'self'" in policy
    assert "connect-src" not in policy
    assert page.headers["x-frame-options"] == "SAMEORIGIN"
    assert [script.status_code for script in scripts] == [200, 200]


async def test_an_address_that_names_no_choice_chooses_nothing(ann: Visitor) -> None:
    page = await ann.get("/console/placements/new?delivery=nonsense")

    assert page.status_code == 200
    assert "nonsense" not in page.text


async def test_a_slug_that_ad_blockers_look_for_is_pointed_out(console: ControlPlane, ann: Visitor) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        blocked = await admin.make_placement(slug="top-728x90")
        neutral = await admin.make_placement(slug="top-of-page")

    pages = [await ann.get(f"/console/placements/{one['id']}?tab=settings") for one in (blocked, neutral)]

    assert ["Ad blockers look for" in page.text for page in pages] == [True, False]


async def test_a_placement_says_whether_its_tag_keeps_the_space_free(
    ann: Visitor, console: ControlPlane
) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        bare = await admin.make_placement(layoutType="full_static")
        sized = await admin.make_placement(layoutType="full_static", recommendedAspectRatio="4:1")
        popup = await admin.make_placement(layoutType="popup")

    shown = [
        "keeps no space free" in (await ann.get(f"/console/placements/{one['id']}")).text
        for one in (bare, sized, popup)
    ]

    assert shown == [True, False, False]
