"""An operator creates everything that an ad needs over the control plane."""

from adloom.runtime.postgres import Pool
from tests.support.control import Client


async def test_an_operator_makes_everything_an_ad_needs(admin: Client) -> None:
    placement = await admin.make_placement(maxBanners=3)
    banner = await admin.make_banner(tags=["sale"], mediaVariants={"de": "https://cdn.example.com/de.png"})
    campaign = await admin.make_campaign()

    await admin.link(campaign, placement)
    assignment = await admin.assign(campaign, placement, banner, weight=7)
    answer = await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")

    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "active"
    assert (assignment["weight"], assignment["displayOrder"], assignment["isActive"]) == (7, 0, True)
    listed = (await admin.get("/admin/banners", params={"tag": "sale"})).json()
    assert listed == {"items": [banner], "totalCount": 1, "page": 1, "pageSize": 20, "totalPages": 1}


async def test_every_write_raises_the_version_of_the_catalog(admin: Client, pool: Pool) -> None:
    placement, banner, campaign = (
        await admin.make_placement(),
        await admin.make_banner(),
        await admin.make_campaign(),
    )
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner)
    link = f"/admin/campaigns/{campaign['id']}/placements/{placement['id']}"
    assert (await admin.patch(link, json={"isActive": False})).status_code == 200
    assert (await admin.patch(f"{link}/banners/{banner['id']}", json={"weight": 1})).status_code == 200
    assert (await admin.delete(f"{link}/banners/{banner['id']}")).status_code == 204
    assert (await admin.delete(link)).status_code == 204
    assert (await admin.delete(f"/admin/placements/{placement['id']}")).status_code == 204

    rows = await pool.fetch("SELECT version, noun FROM catalog_changes ORDER BY version")
    expected = ["placement", "banner", "campaign", *["placement"] * 7]
    assert [(row["version"], row["noun"]) for row in rows] == list(enumerate(expected, 1))
