"""Banners side by side in the console: the sentence, and the pages that have it."""

from uuid import UUID

import pytest

from adloom.console.client import Json
from adloom.console.pages.campaigns.overview import describe_leader
from adloom.console.pages.placements import suggest_rotation
from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from tests.console.visitor import Visitor
from tests.support.control import ControlPlane

COUNT = """
    INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions, clicks)
    SELECT '2026-11-15T11:00:00Z', banners.id, placements.id, campaigns.id, 1_000, $2
      FROM banners, placements, campaigns WHERE banners.public_id = $1
"""


def an_answer(certainty: float | None) -> Json:
    return {"items": [{"bannerId": "b", "title": "B"}], "leader": certainty and "b", "certainty": certainty}


@pytest.mark.parametrize(
    ("certainty", "sentence"),
    [
        (0.964, "“B” leads with 96% certainty."),
        (0.99999, "“B” leads with 99.9% certainty."),
        (0.71, "“B” is ahead, but it may be chance: 71%."),
        (None, "Nothing leads yet: two banners need 100 impressions each."),
    ],
)
def test_the_leader_is_named_in_a_sentence(certainty: float | None, sentence: str) -> None:
    assert describe_leader(an_answer(certainty)) == sentence


def test_turns_are_suggested_for_a_single_slot() -> None:
    assert [suggest_rotation(slots) for slots in (1, 2, None)] == ["weighted", "ordered", "ordered"]


async def test_the_page_of_a_placement_compares_its_banners(
    console: ControlPlane, ann: Visitor, pool: Pool
) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        placement, campaign = await admin.make_placement(rotation="best"), await admin.make_campaign()
        await admin.link(campaign, placement)
        for title, clicks in (("Red", 10), ("<b>Blue", 30)):
            banner = await admin.make_banner(title=title)
            await admin.assign(campaign, placement, banner)
            await pool.execute(COUNT, UUID(banner["id"]), clicks)

    page = (await ann.get(f"/console/placements/{placement['id']}")).text

    assert "Banners side by side" in page
    assert "Blue” leads with 99" in page
    assert "<b>Blue" not in page
