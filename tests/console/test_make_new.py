"""From a dialog that adds something to the form that makes it, and back with it chosen."""

import re

from hypothesis import given
from hypothesis import strategies as st

from adloom.console.components.forms.fields import build_form_address, find_made, find_way_back
from adloom.core.caller import Role
from tests.console.visitor import Visitor
from tests.support.control import ControlPlane
from tests.support.for_each import for_each

ID = "01a1e38f-0000-7000-8000-000000000001"


def test_the_form_of_what_is_new_knows_the_way_back() -> None:
    back = "/console/campaigns/1?tab=banners&add=placement"
    address = build_form_address("banner", back=back, advertiser="7", site=None)

    assert address.startswith("/console/banners/new?advertiser=7&then=%2Fconsole%2Fcampaigns%2F1")
    assert find_way_back({"then": back}, ID) == f"{back}&new={ID}"
    assert find_way_back({"then": back}) == back
    assert find_way_back({}) is None


@for_each(
    "then",
    [
        "https://evil.example/console/",
        "//evil.example/console/",
        "/console/../..//evil.example",
        "/console/\\evil.example",
        "/\t/console/",
        "/elsewhere",
        "javascript:alert(1)",
        "http://[",
    ],
)
def test_the_way_back_stays_in_the_console(then: str) -> None:
    found = find_way_back({"then": then}, ID)

    assert found is None or (found.startswith("/console/") and "\\" not in found)


@given(st.text())
def test_no_address_breaks_the_way_back(then: str) -> None:
    found = find_way_back({"then": then}, ID)

    assert found is None or re.match(r"/console/[^\\\s]*$", found.split("?")[0].replace(" ", "")) is not None


def test_only_ids_are_chosen() -> None:
    assert find_made({"new": ID}) == ID
    assert find_made({"new": "../x"}) is None
    assert find_made({}) is None


async def test_what_was_made_is_chosen_in_the_dialog(console: ControlPlane, ann: Visitor) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        campaign = await admin.make_campaign()
        used = await admin.make_placement(label="Used already")
        await admin.link(campaign, used)
        placement = await admin.make_placement(label="Brand-new place")
        banner = await admin.make_banner(title="Brand-new banner")
    page = f"/console/campaigns/{campaign['id']}"

    plain = (await ann.get(f"{page}?tab=banners")).text
    with_placement = (await ann.get(f"{page}?tab=banners&add=placement&new={placement['id']}")).text
    with_banner = (await ann.get(f"{page}?tab=banners&add={used['id']}&new={banner['id']}")).text
    in_context = (await ann.get(f"{page}?tab=contextual&new={banner['id']}")).text
    unknown = (await ann.get(f"{page}?tab=banners&add=elsewhere&new={banner['id']}")).text
    form = (await ann.get(build_form_address("banner", back=f"{page}?tab=banners"))).text

    assert "New placement" not in plain
    assert "Brand-new place" in with_placement
    assert "New placement" in with_placement
    assert "Brand-new banner" in with_banner
    assert "Brand-new banner" in in_context
    assert "Brand-new banner" not in unknown
    assert "New banner" in form
