"""Law 10: bad input gets an error that says what to change; never a 500, never a half-done write."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.runtime.postgres import Pool
from tests.support.builders import banner_body, campaign_body, placement_body
from tests.support.control import Client

# A surrogate alone is no character, but JSON can spell it.
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
        notes="n", pageContext="p", maxBanners=1, fallbackPlaceholderUrl=None
    ),
    "/admin/banners": banner_body(
        tags=[], mediaVariants={}, ctaUrl=None, bgColor=None, priority=1, advertiserId=None
    ),
    "/admin/campaigns": campaign_body(startsAt=None, endsAt=None, source="internal", priority=1),
    "/admin/api-keys": {"name": "k", "role": "viewer", "accountId": None},
    "/auth/login": {"email": "a@b.c", "password": "p"},
    "/auth/refresh": {"refreshToken": "t"},
}
QUERY_NAMES = ["page", "pageSize", "sort", "search", "tag", "isActive", "source", "includeDeleted", "other"]


@st.composite
def spoilt_bodies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    path = draw(st.sampled_from(sorted(BODIES)))
    spoilt = draw(
        st.dictionaries(st.one_of(st.sampled_from(sorted(BODIES[path])), texts), values, max_size=3)
    )
    return path, {**BODIES[path], **spoilt}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=spoilt_bodies())
async def test_no_body_breaks_anything(case: tuple[str, dict[str, Any]], admin: Client) -> None:
    path, body = case

    answer = await admin.post(path, content=json.dumps(body), headers={"content-type": "application/json"})

    assert answer.status_code in {200, 201, 400, 401, 404, 409}, answer.text
    if answer.status_code == 400:
        assert answer.json()["errorCode"] in {"VALIDATION_FAILED", "CAMPAIGN_DATE_INVALID"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=100))
async def test_no_bytes_break_anything(content: bytes, admin: Client) -> None:
    answer = await admin.post("/admin/banners", content=content, headers={"content-type": "application/json"})

    assert answer.status_code == 400
    assert answer.json()["errorCode"] == "VALIDATION_FAILED"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.dictionaries(st.sampled_from(QUERY_NAMES), st.text(max_size=30), max_size=3))
async def test_no_query_breaks_anything(query: dict[str, str], admin: Client) -> None:
    answer = await admin.get("/admin/banners", params=query)

    assert answer.status_code in {200, 400}, answer.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(min_size=1, max_size=20))
async def test_no_id_breaks_anything(name: str, admin: Client) -> None:
    path = "".join(f"%{byte:02x}" for byte in name.encode())

    answer = await admin.get(f"/admin/banners/{path}")

    assert answer.status_code in {400, 404}, answer.text


async def test_a_write_that_is_refused_leaves_nothing_behind(admin: Client, pool: Pool) -> None:
    await admin.make_placement(slug="taken")
    version = await pool.fetchval("SELECT version FROM catalog_version")

    await admin.post("/admin/placements", json=placement_body(slug="taken"))
    await admin.post("/admin/placements", json=placement_body(maxBanners=2**31))

    assert await pool.fetchval("SELECT version FROM catalog_version") == version
    assert await pool.fetchval("SELECT count(*) FROM placements") == 1
