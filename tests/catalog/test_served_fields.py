"""What is written to a banner and its assignment is in the answer that a page gets, field by field."""

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from adloom.core.clock import ManualClock
from adloom.core.ids import SystemIds
from adloom.events.ingest.token import TokenKeys
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.postgres import Pool
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.index import store
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import Snapshot
from tests.support.answers import at_once
from tests.support.builders import NOON, Json
from tests.support.control import Client

KEYS = TokenKeys("a secret of the tests, long enough to be one")
BANNER: Json = {
    "title": "Lamp",
    "headline": "Light",
    "subheadline": "For long evenings",
    "description": "Brass, by hand",
    "primaryImageUrl": "https://cdn.example.com/lamp.png",
    "primaryImageAlt": "A lamp of brass",
    "mobileImageUrl": "https://cdn.example.com/lamp-small.png",
    "videoUrl": "https://cdn.example.com/lamp.mp4",
    "mediaVariants": {"de": "https://cdn.example.com/lampe.png"},
    "ctaLabel": "Look",
    "ctaUrl": "https://shop.example.com/lamp?size=L#top",
    "ctaOpenNewTab": True,
    "bgColor": "#fed",
    "fallbackPlaceholderUrl": "https://cdn.example.com/no-lamp.png",
}
OVERRIDES: Json = {
    "overrideHeadline": "Light here",
    "overrideSubheadline": "Only here",
    "overrideCtaLabel": "Look here",
    "overrideCtaUrl": "https://shop.example.com/here",
}
PLACING: Json = {"displayOrder": 7, "transitionDurationMs": 250}


async def serve(pool: Pool, slug: str) -> Json:
    """Read the catalog as a delivery process does, and return the first banner of a placement."""
    async with pool.acquire() as connection, store.read_one_version(connection) as version:
        found = [one async for one in store.iter_placements(connection, None)]
    snapshot = Snapshot(
        version=version,
        placements=[one.placement for one in found],
        assignments=[row for one in found for row in one.assignments],
        banner_ids=[],
        campaign_ids=[],
    )
    index = compile_index(snapshot)
    routes = ServeRoutes(
        lambda: index, KEYS.signer, ManualClock(NOON), SystemIds(), public_url="https://ads.example"
    )
    answer = at_once(routes.serve(FastRequest(b"GET", b"/banners/serve/" + slug.encode())))
    return json.loads(answer.body)["banners"][0]


async def show(admin: Client, banner: Json, **assignment: Any) -> str:
    placement, campaign = await admin.make_placement(), await admin.make_campaign()
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner, **assignment)
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    return placement["slug"]


async def test_every_field_of_a_banner_is_served(admin: Client, pool: Pool) -> None:
    slug = await show(admin, await admin.make_banner(**BANNER), **PLACING)

    served = await serve(pool, slug)

    assert {name: served[name] for name in BANNER | PLACING} == BANNER | PLACING
    assert served["isFallback"] is False


async def test_every_override_of_an_assignment_is_served_in_place_of_the_banners_own(
    admin: Client, pool: Pool
) -> None:
    slug = await show(admin, await admin.make_banner(**BANNER), **OVERRIDES)

    served = await serve(pool, slug)

    names = ("headline", "subheadline", "ctaLabel", "ctaUrl")
    assert [served[name] for name in names] == list(OVERRIDES.values())
    assert served["title"] == BANNER["title"]


@pytest.mark.parametrize("overrides", [{}, OVERRIDES])
async def test_all_utm_fields_are_appended_to_the_address(overrides: Json, admin: Client, pool: Pool) -> None:
    given = {"utmSource": "a letter", "utmMedium": "e&mail", "utmCampaign": "autumn", "utmContent": "lämp"}
    slug = await show(admin, await admin.make_banner(**BANNER, **given), **overrides)

    served = await serve(pool, slug)

    address = urlsplit(str(served["ctaUrl"]))

    assert dict(parse_qsl(address.query)).items() >= {
        "utm_source": "a letter", "utm_medium": "e&mail", "utm_campaign": "autumn", "utm_content": "lämp"
    }.items()  # fmt: skip
    assert address.fragment == ("" if overrides else "top")
