"""The taxonomies over HTTP."""

import pytest

from adloom.core.caller import Role
from tests.support.control import Client, ControlPlane, problem

SPORTS, TENNIS = "483", "539"


async def test_a_node_of_content_has_its_place(admin: Client) -> None:
    answer = (await admin.get("/admin/taxonomy/content", params={"search": "tennis"})).json()

    wanted = {"id": TENNIS, "name": "Tennis", "path": ["Sports", "Tennis"], "tier": 2, "parentId": SPORTS}
    assert answer["items"][0] == wanted


async def test_a_product_has_its_place_and_its_content(admin: Client) -> None:
    answer = (await admin.get("/admin/taxonomy/products", params={"search": "beer"})).json()

    wanted = {"id": "1004", "name": "Beer", "path": ["Alcohol", "Beer"], "tier": 2, "parentId": "1002"}
    assert answer["items"][0] == {**wanted, "contentId": "211"}


async def test_a_taxonomy_is_listed_by_parent_and_by_tier(admin: Client) -> None:
    children = (await admin.get(f"/admin/taxonomy/content?parentId={SPORTS}&pageSize=100")).json()
    roots = (await admin.get("/admin/taxonomy/content?tier=1&pageSize=100")).json()

    assert TENNIS in [node["id"] for node in children["items"]]
    assert {node["parentId"] for node in children["items"]} == {SPORTS}
    assert (roots["totalCount"], {node["parentId"] for node in roots["items"]}) == (37, {None})


async def test_a_taxonomy_is_paged_in_the_published_order(admin: Client) -> None:
    pages = [(await admin.get(f"/admin/taxonomy/content?page={page}&pageSize=3")).json() for page in (1, 2)]

    assert [node["id"] for page in pages for node in page["items"]] == [
        "150",
        "151",
        "179",
        "181",
        "153",
        "154",
    ]
    assert (pages[0]["totalCount"], pages[0]["totalPages"]) == (704, 235)


@pytest.mark.parametrize("query", ["parentId=nothing", "tier=5", "pageSize=101", "sort=name"])
async def test_a_question_that_cannot_be_is_refused_by_its_field(query: str, admin: Client) -> None:
    answer = await admin.get(f"/admin/taxonomy/products?{query}")

    body = problem(answer, 400, "VALIDATION_FAILED")
    assert body["errors"][0]["field"] == query.partition("=")[0]


@pytest.mark.parametrize("role", Role)
async def test_everybody_who_is_logged_in_may_read_it(role: Role, control: ControlPlane) -> None:
    async with control.acting_as(role) as client:
        assert (await client.get("/admin/taxonomy/products")).status_code == 200
