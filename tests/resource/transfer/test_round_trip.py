"""An export can be imported: into an empty database it gives an equal export, into its own it changes nothing."""

from typing import Any

import msgspec
import pytest

from adloom.catalog.api import CATALOG
from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.resource.transfer.document import INT4_MAX
from adloom.resource.transfer.schema import build_document_model, describe_document
from adloom.runtime.postgres import Pool
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane

TABLES = (
    "frequency_caps, creatives, banner_assignments, campaign_placements, campaign_targeting_rules, campaigns, banners, placements, sites, "
    "advertisers, publishers, brands, categories, products, seo_records"
)
FORMATS = {"json": "application/json", "csv": "text/csv"}


async def exported(client: Client, kind: str = "json") -> bytes:
    answer = await client.get("/admin/export", params={"format": kind})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].partition(";")[0] == FORMATS[kind]
    return answer.content


async def imported(client: Client, document: bytes, kind: str = "json", **query: str) -> Json:
    answer = await client.post(
        "/admin/import", content=document, params=query, headers={"Content-Type": FORMATS[kind]}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def a_whole_catalog(admin: Client) -> None:
    """Entities of every kind, with every field set and with only the required ones."""
    advertiser = await admin.made("/admin/advertisers", {"name": "Tea", "blockedSites": ["bad.example.com"]})
    publisher = await admin.made("/admin/publishers", {"name": "News"})
    site = await admin.made("/admin/sites", {"domain": "news.example.com", "publisherId": publisher["id"]})
    for kind, reference in [("brand", INT4_MAX), ("category", 8), ("product", 9)]:
        await admin.made(f"/admin/references/{kind}", {"id": reference, "label": f"The {kind}"})
    seo_id = str(SystemIds().make())
    await admin.made("/admin/references/seo", {"id": seo_id, "label": "Seo"})
    placement = await admin.make_placement(
        slug="home-hero",
        publisherId=publisher["id"],
        siteId=site["id"],
        floorCpm=2.5,
        notes="=1+1",
        recommendedWidth=300,
        delivery="auction",
        auctionScoring="learned",
        rotation="best",
        timezone="Asia/Kolkata",
    )
    plain = await admin.make_placement(slug="plain")
    banner = await admin.make_banner(
        advertiserId=advertiser["id"],
        title='Tea, "the" best\nin town; ever',
        description="",
        headline="'quoted'",
        subheadline="null",
        tags=["a", "ü, b"],
        mediaVariants={"wide": "https://cdn.example.com/wide.png"},
        brandId=INT4_MAX,
        categoryId=8,
        productId=9,
        seoId=seo_id,
        publishAt="2026-11-01T00:00:00Z",
        expiresAt="2027-01-01T00:00:00Z",
        recurrenceRule="FREQ=DAILY",
        recurrenceWindowStart="09:00",
        recurrenceWindowEnd="17:30",
        scheduleTimezone="Asia/Kolkata",
        isActive=False,
        ctaLabel="-5 %",
        width=300,
        height=250,
    )
    other = await admin.make_banner()
    campaign = await admin.make_campaign(
        advertiserId=advertiser["id"],
        startsAt="2026-11-16T00:00:00Z",
        endsAt="2026-12-16T00:00:00Z",
        budgetDailyPaisa=10_000,
        bidAmount=1.25,
        impressionCap=0,
        categories=["539", "424"],
        excludedCategories=["389", "540"],
        adProductCategory="1004",
        bidsOnUnmatched=True,
        targetCpa=2.5,
        bidStrategy="fleet",
    )
    draft = await admin.make_campaign()
    await admin.patch(f"/admin/campaigns/{campaign['id']}/schedule")
    await admin.link(campaign, placement)
    await admin.link(draft, plain)
    await admin.patch(f"/admin/campaigns/{draft['id']}/placements/{plain['id']}", json={"isActive": False})
    await admin.assign(campaign, placement, banner, weight=7, overrideHeadline="@home", isFallback=True)
    await admin.assign(draft, plain, other)
    await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    for rule_type, operator, value in [
        ("country", "in", ["IN", "NP"]),
        ("login_state", "is", True),
        ("hour_of_day", "between", [22, 6]),
    ]:
        await admin.made(
            "/admin/targeting-rules",
            {"campaignId": campaign["id"], "ruleType": rule_type, "operator": operator, "value": value},
        )
    await admin.make_cap(banner, window="Week", maxImpressionsPerUser=7)
    await admin.make_cap(banner, window="Hour")
    await admin.make_cap(other, window="Lifetime")


async def a_deleted_catalog(admin: Client) -> None:
    banner, campaign, placement = (
        await admin.make_banner(),
        await admin.make_campaign(),
        await admin.make_placement(slug="used-by-the-deleted"),
    )
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner)
    await admin.make_cap(banner)
    await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    await admin.delete(f"/admin/banners/{banner['id']}")
    await admin.delete(f"/admin/campaigns/{campaign['id']}")


async def test_an_export_is_as_the_api_describes_it(admin: Client) -> None:
    await a_whole_catalog(admin)
    document = await exported(admin)
    described = describe_document(CATALOG.lists)

    build_document_model(CATALOG.lists).model_validate_json(document)

    lists = described["CatalogDocument"]["properties"]
    for name, items in msgspec.json.decode(document).items():
        if name not in {"format", "version"}:
            kind = lists[name]["items"]["$ref"].rpartition("/")[2]
            assert items, name
            assert set(described[kind]["properties"]) - {"key", "updatedAt"} == set(items[0]), name


@pytest.mark.parametrize("kind", FORMATS)
async def test_an_export_imported_into_an_empty_database_gives_an_equal_export(
    kind: str, admin: Client, pool: Pool
) -> None:
    await a_whole_catalog(admin)
    await a_deleted_catalog(admin)
    before = {name: await exported(admin, name) for name in FORMATS}
    await pool.execute(f"TRUNCATE {TABLES} RESTART IDENTITY CASCADE")

    report = await imported(admin, before[kind], kind)

    assert {name: await exported(admin, name) for name in FORMATS} == before
    assert (report["updated"], report["unchanged"]) == (0, 0)
    assert {name: count["created"] for name, count in report["counts"].items()} == {
        "advertisers": 1,
        "publishers": 1,
        "sites": 1,
        "brands": 1,
        "categories": 1,
        "products": 1,
        "seoRecords": 1,
        "placements": 3,
        "banners": 2,
        "campaigns": 2,
        "links": 2,
        "assignments": 2,
        "creatives": 1,
        "targetingRules": 3,
        "frequencyCaps": 3,
    }


@pytest.mark.parametrize("kind", FORMATS)
async def test_an_export_imported_again_changes_nothing(kind: str, admin: Client, pool: Pool) -> None:
    await a_whole_catalog(admin)
    document = await exported(admin, kind)
    before = await everything(pool)

    report = await imported(admin, document, kind)

    assert (report["created"], report["updated"], report["changes"]) == (0, 0, [])
    assert report["unchanged"] == 24
    assert await everything(pool) == before


@pytest.mark.parametrize("role", [Role.ADVERTISER, Role.PUBLISHER])
async def test_an_account_can_import_its_own_export(role: Role, control: ControlPlane, admin: Client) -> None:
    await a_whole_catalog(admin)
    account_id = SystemIds().make()
    async with control.acting_as(role, account_id) as account:
        if role is Role.ADVERTISER:
            campaign, banner = await account.make_campaign(), await account.make_banner()
            placement = await admin.make_placement(slug="rented")
            await account.link(campaign, placement)
            await account.assign(campaign, placement, banner)
            await admin.patch(f"/admin/placements/{placement['id']}", json={"isActive": False})
        else:
            await account.make_placement(slug="mine")

        document = await exported(account)
        report = await imported(account, document)

    assert b"home-hero" not in document
    assert (report["created"], report["updated"]) == (0, 0)
    assert report["unchanged"] == (4 if role is Role.ADVERTISER else 1)


async def everything(pool: Pool) -> dict[str, Any]:
    tables = [*TABLES.split(", "), "audit_entries", "catalog_version", "catalog_changes"]
    found: dict[str, Any] = {}
    for table in tables:
        found[table] = [tuple(row) for row in await pool.fetch(f"SELECT * FROM {table} ORDER BY 1")]  # noqa: S608 - our own names
    return found
