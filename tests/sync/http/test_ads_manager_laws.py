"""Laws 9 and 10 on the routes of stats sync, which are taken from the API's own description.

One account can neither read nor change another's data; bad input gets an error that says what to change.
"""

import json
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.app.control import build_openapi_document
from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from tests.support.builders import UNKNOWN_ID
from tests.support.control import Client, ControlPlane
from tests.sync.http.seller import API, DAY, Seller

PARAMETER = re.compile(r"\{(\w+)\}")
TABLES = ("ad_accounts", "sellpages", "campaigns", "adsets", "ads")
BODIES: dict[str, dict[str, Any]] = {
    "accounts": {
        "platform": "mock",
        "externalId": "x",
        "currency": "USD",
        "timezone": "UTC",
        "credentials": "x",
    },
    "sellpages": {"url": "https://shop.example.com/"},
    "campaigns": {"status": "ACTIVE", "budgetType": "DAILY", "externalCampaignId": None},
    "adsets": {"status": "ACTIVE", "externalAdsetId": None},
    "ads": {"status": "ACTIVE", "externalAdId": None},
}
BESIDES = ("name", "sellerId", "updatedAt", "budget", "adAccountId", "sellpageId", "campaignId", "adsetId")
texts = st.text(
    st.one_of(st.characters(), st.characters(categories=["Cs"]), st.sampled_from("\0\n%_\\'\"")), max_size=30
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.sampled_from([2**31, 10**400, 1e-9, DAY, "2026-12-01T00:00:00Z", str(UNKNOWN_ID), "1", "USD", "EUR"]),
)
values = st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(texts, scalars, max_size=2))
QUERY_NAMES = (
    *("page", "pageSize", "sort", "search", "status", "state", "format", "sellerId", "isActive", "platform"),
    *("dateFrom", "dateTo", "campaignId", "adsetId", "adAccountId", "sellpageId", "currency", "adSource"),
)


def paths() -> dict[str, Any]:
    return build_openapi_document()["paths"]


def operations() -> list[tuple[str, str]]:
    return [
        (method.upper(), path)
        for path, described in paths().items()
        for method in described
        if path.startswith(API)
    ]


def test_every_route_of_the_contract_is_in_the_api_description() -> None:
    expected = {(method, f"{API}/{noun}") for noun in BODIES for method in ("GET", "POST")}
    expected |= {
        (method, f"{API}/{noun}/{{{noun.removesuffix('s')}_id}}")
        for noun in BODIES
        for method in ("GET", "PATCH", "DELETE")
    }
    expected |= {("GET", f"{API}/reports/{what}") for what in ("campaigns", "adsets", "ads", "sellpages")}
    expected |= {
        ("POST", f"{API}/sync"),
        ("GET", f"{API}/jobs"),
        ("GET", f"{API}/jobs/{{job_id}}"),
        ("POST", f"{API}/jobs/{{job_id}}/retry"),
    }

    assert set(operations()) == expected
    for method, path in operations():
        operation = paths()[path][method.lower()]
        assert operation["security"], path
        assert "sellerId" in {one["name"] for one in operation["parameters"] if one["in"] == "query"}, path


async def attempt(client: Client, method: str, path: str, seller: Seller) -> int:
    def named(found: re.Match[str]) -> str:
        noun = f"{found[1].removesuffix('_id')}s"
        return seller.id_of(noun) if noun in seller.made else f"sync_{seller.id}_{DAY}_{DAY}_AD"

    body = {"name": "Stolen"} if method in {"POST", "PATCH"} and not path.endswith("retry") else None
    query = {"dateFrom": DAY, "dateTo": DAY} if "/reports/" in path else {}
    answer = await client.request(method, PARAMETER.sub(named, path), json=body, params=query)
    assert not any(seller.id_of(noun) in answer.text for noun in BODIES)
    return answer.status_code


async def rows_of(pool: Pool) -> list[list[str]]:
    return [
        sorted(str(dict(row)) for row in await pool.fetch(f"SELECT * FROM sync.{table}"))  # noqa: S608 - our own
        for table in TABLES
    ]


async def test_another_seller_reads_and_changes_nothing(
    control: ControlPlane, seller: Seller, pool: Pool
) -> None:
    await seller.sync(date=DAY)
    before = await rows_of(pool)

    async with control.acting_as(Role.ADVERTISER) as intruder:
        found = {
            (method, path): await attempt(intruder, method, path, seller)
            for method, path in operations()
            if "{" in path or method == "GET"
        }

    assert found == {(method, path): 404 if "{" in path else 200 for method, path in found}
    assert await rows_of(pool) == before


async def test_a_publisher_may_do_nothing(control: ControlPlane, seller: Seller) -> None:
    async with control.acting_as(Role.PUBLISHER) as publisher:
        found = {await attempt(publisher, method, path, seller) for method, path in operations()}

    assert found == {403}


async def test_a_viewer_changes_nothing(control: ControlPlane, seller: Seller, pool: Pool) -> None:
    before = await rows_of(pool)

    async with control.acting_as(Role.VIEWER) as viewer:
        found = {
            await attempt(viewer, method, path, seller) for method, path in operations() if method != "GET"
        }

    assert found == {403}
    assert await rows_of(pool) == before


async def test_no_route_can_be_read_without_a_token(control: ControlPlane, seller: Seller) -> None:
    async with control.client() as other_client:
        found = {await attempt(other_client, method, path, seller) for method, path in operations()}

    assert found == {401}


@st.composite
def invalid(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    noun = draw(st.sampled_from(sorted(BODIES)))
    names = st.one_of(st.sampled_from([*BODIES[noun], *BESIDES]), texts)
    return noun, draw(st.dictionaries(names, values, min_size=1, max_size=3))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=invalid())
async def test_no_body_causes_a_server_error(case: tuple[str, dict[str, Any]], seller: Seller) -> None:
    noun, changes = case
    headers = {"content-type": "application/json"}
    body = {"name": "x", **seller.parents(noun), **BODIES[noun], **changes}

    made = await seller.client.post(f"{API}/{noun}", content=json.dumps(body), headers=headers)
    changed = await seller.client.patch(seller.path(noun), content=json.dumps(changes), headers=headers)

    assert made.status_code in {201, 400, 404, 409}, made.text
    assert changed.status_code in {200, 400, 404, 409}, changed.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.dictionaries(st.sampled_from(["date", "dateFrom", "dateTo", "sellerId", "x"]), values, max_size=3)
)
async def test_no_sync_request_causes_a_server_error(body: dict[str, Any], seller: Seller) -> None:
    answer = await seller.client.post(
        f"{API}/sync", content=json.dumps(body), headers={"content-type": "application/json"}
    )

    assert answer.status_code in {202, 400}, answer.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.deferred(
        lambda: st.sampled_from(
            [path for method, path in operations() if method == "GET" and "{" not in path]
        )
    ),
    query=st.dictionaries(
        st.sampled_from(QUERY_NAMES),
        st.one_of(
            st.text(max_size=20), st.integers().map(str), st.sampled_from([DAY, str(UNKNOWN_ID), "-spend"])
        ),
        max_size=3,
    ),
)
async def test_no_query_causes_a_server_error(path: str, query: dict[str, str], seller: Seller) -> None:
    days = {"dateFrom": DAY, "dateTo": DAY} if "/reports/" in path else {}

    answer = await seller.client.get(path, params={**days, **query})

    assert answer.status_code in {200, 400, 404}, answer.text
