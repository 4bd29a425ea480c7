"""Searches of lists: case-insensitive, in any script, and always by index."""

from typing import Any

import pytest

from adloom.catalog.banner import banners
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.placement import placements
from adloom.resource.access import Scope
from adloom.resource.table import ResourceTable
from adloom.runtime.listing import Filters, PageRequest
from adloom.runtime.postgres import Pool
from tests.support.control import Client

ROWS = 10_000
GENERATED = f"""
    INSERT INTO banners (public_id, title, headline, description, primary_image_url, created_at)
    SELECT gen_random_uuid(), 'Banner ' || md5(n::text), md5((n + 1)::text), md5((n + 2)::text), 'https://x/',
           now() - n * interval '1 second'
      FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO campaigns (public_id, name, description, advertiser_name, notes, created_at)
    SELECT gen_random_uuid(), 'Campaign ' || md5(n::text), md5((n + 1)::text), md5((n + 2)::text), md5((n + 3)::text),
           now() - n * interval '1 second'
      FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO placements (public_id, slug, label, page_context, layout_type, created_at)
    SELECT gen_random_uuid(), 'place-' || n, 'Placement ' || md5(n::text), md5((n + 1)::text), 'full_slider',
           now() - n * interval '1 second'
      FROM generate_series(1, {ROWS}) AS n
"""  # noqa: S608 - our own names
TERM = "%c4ca42%"  # The beginning of md5('1').
NEWEST = PageRequest(sort="created_at", is_descending=True)


async def fill(pool: Pool) -> None:
    await pool.execute(GENERATED)
    # The server does this by itself after a while; only then it knows the tables' contents.
    await pool.execute("VACUUM ANALYZE banners, campaigns, placements")


async def plan(pool: Pool, sql: str, *values: object) -> str:
    return "\n".join(row[0] for row in await pool.fetch(f"EXPLAIN {sql}", *values))


SEARCHED = {
    "banners": ("title", "headline", "description"),
    "campaigns": ("name", "description", "advertiser_name", "notes"),
    "placements": ("slug", "label", "page_context"),
}


async def test_long_lists_are_searched_and_sorted_by_index(pool: Pool) -> None:
    await fill(pool)

    for table, columns in SEARCHED.items():
        await check_search(table, columns, pool)
    for resource in (banners, campaigns, placements):
        await check_newest(resource.table, pool)
    await check_search_by_advertiser(pool)


async def check_search(table: str, columns: tuple[str, ...], pool: Pool) -> None:
    where = " OR ".join(f"it.{column} ILIKE $1" for column in columns)

    # Often enough that the server would switch to one plan for all values.
    plans = [
        await plan(pool, f"SELECT count(*) FROM {table} AS it WHERE {where}", term)  # noqa: S608 - our own names
        for term in ["%e%"] * 8 + [TERM]
    ]

    assert all(f"{table}_{column}_search" in plans[-1] for column in columns), plans[-1]
    assert "Seq Scan" not in plans[-1]


async def test_campaigns_are_found_by_the_name_of_their_advertiser(admin: Client) -> None:
    advertiser = await admin.make_advertiser(name="Birch & Co")
    campaign = await admin.make_campaign(advertiserId=advertiser["id"], labels=["spring"])
    await admin.make_campaign(notes="Ask Birch")
    await admin.make_campaign()

    by_name = (await admin.get("/admin/campaigns", params={"search": "birch & co"})).json()
    by_label = (await admin.get("/admin/campaigns", params={"label": "spring"})).json()
    by_either = (await admin.get("/admin/campaigns", params={"search": "BIRCH"})).json()

    assert [one["id"] for one in by_name["items"]] == [campaign["id"]]
    assert [one["id"] for one in by_label["items"]] == [campaign["id"]]
    assert by_either["totalCount"] == 2


async def check_search_by_advertiser(pool: Pool) -> None:
    filters = campaigns.build_filters(campaigns.query.model_validate({"search": TERM.strip("%")}))

    shown = await plan(pool, f"SELECT count(*) FROM campaigns AS it WHERE {filters.sql}", *filters.values)  # noqa: S608 - our own names

    assert "campaigns_advertiser_id" in shown
    assert "Seq Scan on campaigns" not in shown


async def check_newest(table: ResourceTable[Any], pool: Pool) -> None:
    statements: list[str] = []
    async with pool.acquire() as connection:
        connection.add_query_logger(lambda record: statements.append(record.query))
        listed = await table.read_page(connection, Scope(None), Filters(), NEWEST)
    [statement] = [one for one in statements if "OFFSET" in one]

    shown_plan = await plan(pool, statement)

    assert listed.total_count == ROWS
    assert "_created_at" in shown_plan
    assert "Sort" not in shown_plan


@pytest.mark.parametrize(
    ("title", "term"),
    [
        ("Grüner TEE", "grüner tee"),
        ("Grüner Tee", "GRÜNER"),
        ("ЧАЙ и кофе", "чай"),
        ("100 % tea_time", "100 % TEA_"),
        ("Ab", "B"),
        ("चाय", "चा"),
    ],
)
async def test_a_search_ignores_case_in_any_script(title: str, term: str, admin: Client) -> None:
    await admin.make_banner(title="Something else")
    banner = await admin.make_banner(title=title)

    found = (await admin.get("/admin/banners", params={"search": term})).json()

    assert [item["id"] for item in found["items"]] == [banner["id"]]
