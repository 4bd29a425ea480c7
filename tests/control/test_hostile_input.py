"""Law 10: bad input gets an error that says what to change; never a 500, never a half-done write."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.runtime.postgres import Pool
from tests.support.builders import (
    UNKNOWN_ID,
    advertiser_body,
    banner_body,
    campaign_body,
    placement_body,
    publisher_body,
    reference_body,
    rule_body,
    site_body,
)
from tests.support.control import Client

# A lone surrogate is not a character, but JSON can contain it.
characters = st.one_of(
    st.characters(), st.characters(categories=["Cs"]), st.sampled_from("\0\n\r\u202e\ufeff%_\\'\"")
)
texts = st.text(characters, max_size=40)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.sampled_from(
        [2**31, -(2**31) - 1, 2**63, 10**400, "2026-12-01T00:00:00Z", "1", "true", "https://a.example.com"]
    ),
)
values = st.one_of(scalars, st.lists(scalars, max_size=3), st.dictionaries(texts, scalars, max_size=3))

BODIES = {
    "/admin/placements": placement_body(
        notes="n",
        pageContext="p",
        maxBanners=1,
        fallbackPlaceholderUrl=None,
        delivery="direct",
        placementType="t",
        floorCpm=0.5,
        auctionScoring="learned",
        rotation="weighted",
        timezone="UTC",
        siteId=None,
    ),
    "/admin/banners": banner_body(
        tags=[],
        mediaVariants={},
        ctaUrl=None,
        bgColor=None,
        priority=1,
        advertiserId=None,
        brandId=None,
        seoId=None,
        publishAt=None,
        expiresAt=None,
        scheduleTimezone="UTC",
        scheduleStatus="active",
        recurrenceRule=None,
        recurrenceWindowStart="09:00",
        recurrenceWindowEnd="17:00",
        isEvergreenFallback=False,
    ),
    "/admin/campaigns": campaign_body(
        startsAt=None,
        endsAt=None,
        source="internal",
        priority=1,
        budgetTotalPaisa=1,
        impressionCap=1,
        bidType="cpm",
        bidAmount=1.5,
        pacingStrategy="Smooth",
        timezone="UTC",
    ),
    "/admin/advertisers": advertiser_body(dailyBudgetPaisa=1, timezone="UTC", blockedSites=["a.example.com"]),
    "/admin/publishers": publisher_body(),
    "/admin/sites": site_body(name="n", timezone="UTC", publisherId=None),
    "/admin/references/brand": reference_body(),
    "/admin/references/seo": reference_body(id=str(UNKNOWN_ID)),
    "/admin/targeting-rules": rule_body(campaignId=str(UNKNOWN_ID), isActive=True),
    "/api/v1/admin/frequency/caps": {"adId": str(UNKNOWN_ID), "maxImpressionsPerUser": 3, "window": "Week"},
    "/api/v1/ads/explain": {
        "userId": str(UNKNOWN_ID),
        "placementType": "feed",
        "placement": None,
        "userContext": {"country": "DE", "segment": "s"},
    },
    "/admin/api-keys": {"name": "k", "role": "viewer", "accountId": None},
    "/auth/login": {"email": "a@b.c", "password": "p"},
    "/auth/refresh": {"refreshToken": "t"},
    "/auth/password": {"token": "t", "newPassword": "a good password"},
}
CODES = {
    "VALIDATION_FAILED",
    "CAMPAIGN_DATE_INVALID",
    "BANNER_SCHEDULE_INVALID",
    "TARGETING_RULE_INVALID_OPERATOR",
}
LISTS = ["banners", "placements", "campaigns", "advertisers", "sites", "targeting-rules", "references/brand"]
QUERY_NAMES = [
    *("page", "pageSize", "sort", "search", "tag", "isActive", "source", "includeDeleted", "other"),
    *("scheduleStatus", "brandId", "categoryId", "delivery", "layoutType", "status", "campaignId"),
]


@st.composite
def invalid_bodies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    path = draw(st.sampled_from(sorted(BODIES)))
    invalid = draw(
        st.dictionaries(st.one_of(st.sampled_from(sorted(BODIES[path])), texts), values, max_size=3)
    )
    return path, {**BODIES[path], **invalid}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=invalid_bodies())
async def test_no_body_causes_a_server_error(case: tuple[str, dict[str, Any]], admin: Client) -> None:
    path, body = case

    answer = await admin.post(path, content=json.dumps(body), headers={"content-type": "application/json"})

    assert answer.status_code in {200, 201, 400, 401, 404, 409}, answer.text
    if answer.status_code == 400:
        assert answer.json()["errorCode"] in CODES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=100))
async def test_no_bytes_cause_a_server_error(content: bytes, admin: Client) -> None:
    answer = await admin.post("/admin/banners", content=content, headers={"content-type": "application/json"})

    assert answer.status_code == 400
    assert answer.json()["errorCode"] == "VALIDATION_FAILED"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    noun=st.sampled_from(LISTS),
    query=st.dictionaries(
        st.sampled_from(QUERY_NAMES), st.one_of(st.text(max_size=30), st.integers().map(str)), max_size=3
    ),
)
async def test_no_query_causes_a_server_error(noun: str, query: dict[str, str], admin: Client) -> None:
    answer = await admin.get(f"/admin/{noun}", params=query)

    assert answer.status_code in {200, 400}, answer.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(min_size=1, max_size=20))
async def test_no_id_causes_a_server_error(name: str, admin: Client) -> None:
    path = "".join(f"%{byte:02x}" for byte in name.encode())

    answers = [
        await admin.get(f"/admin/banners/{path}"),
        await admin.delete(f"/admin/references/brand/{path}"),
        await admin.delete(f"/admin/references/seo/{path}"),
        await admin.get(f"/admin/references/{path}/x"),
    ]

    assert {answer.status_code for answer in answers} <= {400, 404, 405}, [one.text for one in answers]


@st.composite
def invalid_changes(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    noun = draw(st.sampled_from(sorted(CHANGED)))
    names = st.one_of(st.sampled_from([*BODIES[CHANGED[noun]], "updatedAt"]), texts)
    return noun, draw(st.dictionaries(names, values, min_size=1, max_size=3))


CHANGED = {
    "advertisers": "/admin/advertisers",
    "publishers": "/admin/publishers",
    "sites": "/admin/sites",
    "placements": "/admin/placements",
    "banners": "/admin/banners",
    "campaigns": "/admin/campaigns",
    "targeting-rules": "/admin/targeting-rules",
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=invalid_changes())
async def test_no_change_causes_a_server_error(case: tuple[str, dict[str, Any]], admin: Client) -> None:
    noun, body = case
    listed = (await admin.get(f"/admin/{noun}")).json()["items"]
    thing = listed[0] if listed else await a_new(noun, admin)

    answer = await admin.patch(
        f"/admin/{noun}/{thing['id']}",
        content=json.dumps(body),
        headers={"content-type": "application/json"},
    )

    assert answer.status_code in {200, 400, 404, 409}, answer.text
    if answer.status_code == 400:
        assert answer.json()["errorCode"] in CODES


async def a_new(noun: str, admin: Client) -> dict[str, Any]:
    if noun == "targeting-rules":
        return await admin.make_rule(await admin.make_campaign())
    return await admin.made(f"/admin/{noun}", BODIES[CHANGED[noun]])


@pytest.mark.parametrize("depth", [100, 400, 900])
async def test_a_deeply_nested_value_is_refused(depth: int, admin: Client) -> None:
    campaign = await admin.make_campaign()
    body = json.dumps(rule_body(campaignId=campaign["id"], value="deep"))
    nested = body.replace('"deep"', "[" * depth + "]" * depth)

    answer = await admin.post(
        "/admin/targeting-rules", content=nested, headers={"content-type": "application/json"}
    )

    assert answer.status_code == 400, answer.text


async def test_a_write_that_is_refused_leaves_nothing_behind(admin: Client, pool: Pool) -> None:
    await admin.make_placement(slug="taken")
    version = await pool.fetchval("SELECT version FROM catalog_version")

    await admin.post("/admin/placements", json=placement_body(slug="taken"))
    await admin.post("/admin/placements", json=placement_body(maxBanners=2**31))

    assert await pool.fetchval("SELECT version FROM catalog_version") == version
    assert await pool.fetchval("SELECT count(*) FROM placements") == 1
