"""The fields of a site: defaults, rules, and that documents and history have them all."""

from typing import Any

from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from tests.support.builders import placement_body, site_body
from tests.support.control import Client, ControlPlane, problem
from tests.support.for_each import for_each

ALCOHOL, BEER = "1002", "1004"
SHAPE = [float(hour) for hour in range(24)]
EVERYTHING: dict[str, Any] = {
    "domain": "magazine.example.com",
    "seedUrl": "https://www.magazine.example.com/start?a=1",
    "cronSchedule": "15 3 * * 0",
    "maxDepth": 1,
    "maxPages": 50,
    "crawlConcurrency": 2,
    "hostPattern": r"(news\.)?magazine\.example\.com",
    "adProductBlocklist": [ALCOHOL, BEER],
    "blockedDomains": ["shop.example.com"],
    "approvalMode": "trusted",
    "floorCpm": 2.5,
    "minFloorCpm": 0.2,
    "floorMode": "sweep",
    "auctionMode": "first_price",
    "bidWeight": 1,
    "acceptsFiller": False,
    "isSuspended": True,
    "pacing": {"dayDurationSeconds": 60, "weekdayShape": SHAPE, "weekendShape": None, "warmup": True},
}


async def test_a_site_has_the_published_defaults(admin: Client) -> None:
    site = await admin.make_site()

    wanted: dict[str, Any] = {
        "seedUrl": None,
        "cronSchedule": "0 2 * * *",
        "maxDepth": 2,
        "maxPages": 1000,
        "crawlConcurrency": 5,
        "hostPattern": None,
        "adProductBlocklist": [],
        "blockedDomains": [],
        "approvalMode": "manual",
        "floorCpm": 0.5,
        "minFloorCpm": 0.1,
        "floorMode": "fixed",
        "auctionMode": "second_price",
        "bidWeight": 0.5,
        "acceptsFiller": True,
        "isSuspended": False,
        "pacing": {
            "dayDurationSeconds": 86400,
            "weekdayShape": None,
            "weekendShape": None,
            "warmup": False,
        },
        "verifiedAt": None,
        "verifiedHost": None,
    }
    assert {field: site[field] for field in wanted} == wanted


async def test_a_site_comes_back_as_it_was_made(admin: Client) -> None:
    site = await admin.make_site(**EVERYTHING)

    assert {field: site[field] for field in EVERYTHING} == EVERYTHING
    assert (await admin.get(f"/admin/sites/{site['id']}")).json() == site


async def test_a_site_of_before_has_the_defaults_but_is_not_crawled(admin: Client, pool: Pool) -> None:
    await pool.execute(
        "INSERT INTO sites (public_id, domain, name) VALUES (gen_random_uuid(), 'old.test', 'Old')"
    )

    old = (await admin.get("/admin/sites?search=old.test")).json()["items"][0]

    assert (old["cronSchedule"], old["maxDepth"], old["floorCpm"]) == (None, 2, 0.5)
    assert old["pacing"]["dayDurationSeconds"] == 86400


async def test_values_are_normalised(admin: Client) -> None:
    site = await admin.make_site(
        cronSchedule=" 0  5 * * mon ", blockedDomains=["SHOP.example.com.", "shop.example.com"]
    )

    assert (site["cronSchedule"], site["blockedDomains"]) == ("0 5 * * mon", ["shop.example.com"])


@for_each(
    ("field", "value", "message"),
    [
        ("seedUrl", "https://elsewhere.test/", "must be on"),
        ("seedUrl", "ftp://{domain}/", "http"),
        ("seedUrl", "https://{domain}:8443/", "port"),
        ("seedUrl", "https://{domain}:99999/", "port"),
        ("seedUrl", "https://ann:pw@{domain}/", "user"),
        ("cronSchedule", "every night", "fields"),
        ("cronSchedule", "* * * * * *", "fields"),
        ("cronSchedule", "61 2 * * *", "minute"),
        ("cronSchedule", "0 0 31 2 *", ""),
        ("maxDepth", 6, "5"),
        ("maxDepth", -1, "0"),
        ("maxPages", 0, "1"),
        ("maxPages", 10_001, "10000"),
        ("crawlConcurrency", 9, "8"),
        ("hostPattern", "(?=a)", "RE2"),
        ("hostPattern", "", "1"),
        ("hostPattern", "a" * 501, "500"),
        ("adProductBlocklist", ["no-such"], "/admin/taxonomy/products"),
        ("adProductBlocklist", [ALCOHOL] * 1001, "1000"),
        ("blockedDomains", ["https://shop.example.com/"], "domain"),
        ("approvalMode", "sometimes", "manual"),
        ("floorCpm", 0.05, ""),
        ("floorCpm", 0.12345, "4 decimal"),
        ("minFloorCpm", 0.51, "floorCpm"),
        ("floorMode", "free", "fixed"),
        ("auctionMode", "third_price", "first_price"),
        ("bidWeight", 0.09, "0.1"),
        ("bidWeight", 1.01, "1"),
        ("bidWeight", "0.5", "number"),
        ("acceptsFiller", 1, "true or false"),
        ("pacing", None, "must be an object"),
        ("pacing", {"dayDurationSeconds": 59}, "60"),
        ("pacing", {"weekdayShape": [1] * 23}, "24"),
        ("pacing", {"weekdayShape": [5e-324] + [0] * 23}, "0.000001"),
        ("pacing", {"weekendShape": [0] * 24}, "0.000001 or more"),
        ("pacing", {"weekendShape": [-1] * 24}, "0"),
        ("pacing", {"speed": 2}, "not a field"),
        ("verifiedAt", "2026-11-15T12:00:00Z", "not a field"),
        ("verifiedHost", "magazine.example.com", "not a field"),
    ],
)
async def test_a_bad_value_is_refused_by_its_field(
    field: str, value: Any, message: str, admin: Client
) -> None:
    site = await admin.make_site()
    body = {field: value.replace("{domain}", site["domain"]) if isinstance(value, str) else value}
    wrong = "minFloorCpm" if body == {"floorCpm": 0.05} else field

    for answer in (
        await admin.post("/admin/sites", json=site_body(**body)),
        await admin.patch(f"/admin/sites/{site['id']}", json=body),
    ):
        errors = problem(answer, 400, "VALIDATION_FAILED")["errors"]
        assert {error["field"].split(".")[0] for error in errors} == {wrong}
        assert message in errors[0]["message"] or "seedUrl" in body
    assert (await admin.get(f"/admin/sites/{site['id']}")).json() == site


async def test_a_change_is_checked_together_with_what_stays(admin: Client) -> None:
    site = await admin.make_site(**EVERYTHING)
    path = f"/admin/sites/{site['id']}"

    for change, field in (
        ({"domain": "other.example.com"}, "seedUrl"),
        ({"hostPattern": "nothing"}, "seedUrl"),
        ({"floorCpm": 0.1}, "minFloorCpm"),
    ):
        errors = problem(await admin.patch(path, json=change), 400, "VALIDATION_FAILED")["errors"]
        assert [error["field"] for error in errors] == [field]


async def test_pacing_is_replaced_as_a_whole(admin: Client) -> None:
    site = await admin.make_site(**EVERYTHING)

    changed = await admin.patch(f"/admin/sites/{site['id']}", json={"pacing": {"weekendShape": SHAPE}})

    assert changed.json()["pacing"] == {
        "dayDurationSeconds": 86400,
        "weekdayShape": None,
        "weekendShape": SHAPE,
        "warmup": False,
    }


async def test_another_domain_is_not_verified(admin: Client, pool: Pool) -> None:
    site = await admin.make_site()
    await pool.execute("UPDATE sites SET verified_at = now(), verified_host = domain")
    path = f"/admin/sites/{site['id']}"

    renamed = (await admin.patch(path, json={"name": "News"})).json()
    moved = (await admin.patch(path, json={"domain": "moved.example.com"})).json()

    assert renamed["verifiedHost"] == site["domain"]
    assert renamed["verifiedAt"] is not None
    assert (moved["verifiedAt"], moved["verifiedHost"]) == (None, None)


async def test_a_document_has_every_field_that_clients_set_and_none_that_they_do_not(
    admin: Client, control: ControlPlane, pool: Pool
) -> None:
    await admin.make_site(**EVERYTHING)
    await pool.execute("UPDATE sites SET verified_at = now(), verified_host = domain")
    exported = (await admin.get("/admin/export")).json()
    (item,) = exported["sites"]

    again = await admin.post("/admin/import", json=exported)
    await pool.execute("DELETE FROM sites")
    anew = await admin.post("/admin/import", json={"sites": [item]})

    assert {field: item[field] for field in EVERYTHING} == EVERYTHING
    assert {"verifiedAt", "verifiedHost"}.isdisjoint(item)
    assert [change["action"] for change in again.json()["changes"]] == []
    assert anew.status_code == 200, anew.text
    made = (await admin.get("/admin/sites")).json()["items"][0]
    assert {field: made[field] for field in EVERYTHING} == EVERYTHING
    assert made["verifiedAt"] is None
    async with control.acting_as(Role.PUBLISHER) as publisher:
        stolen = await publisher.post(
            "/admin/import", json={"sites": [{"domain": "mine.test", "verifiedHost": "mine.test"}]}
        )
    problem(stolen, 400, "VALIDATION_FAILED")


async def test_a_sheet_has_pacing_as_one_cell(admin: Client, pool: Pool) -> None:
    await admin.make_site(**EVERYTHING)
    sheet = (await admin.get("/admin/export?format=csv")).content
    await pool.execute("DELETE FROM sites")

    answer = await admin.post("/admin/import", content=sheet, headers={"Content-Type": "text/csv"})

    assert answer.status_code == 200, answer.text
    made = (await admin.get("/admin/sites")).json()["items"][0]
    assert {field: made[field] for field in EVERYTHING} == EVERYTHING


async def test_the_history_shows_what_changed(admin: Client) -> None:
    site = await admin.make_site()
    pacing = {"dayDurationSeconds": 60, "weekdayShape": None, "weekendShape": None, "warmup": False}
    await admin.patch(f"/admin/sites/{site['id']}", json={"pacing": pacing, "maxDepth": 1})

    entry = (await admin.get(f"/admin/audit?noun=site&nounId={site['id']}")).json()["items"][0]

    assert entry["changes"] == {
        "maxDepth": {"from": 2, "to": 1},
        "pacing": {"from": site["pacing"], "to": pacing},
    }


async def test_a_site_with_slots_stays(admin: Client) -> None:
    site = await admin.make_site()
    path = f"/admin/sites/{site['id']}"
    slot = await admin.make_placement(delivery="contextual", siteId=site["id"])

    problem(await admin.delete(path), 409, "SITE_HAS_SLOTS")
    assert (await admin.delete(f"/admin/placements/{slot['id']}")).status_code == 204
    assert (await admin.delete(path)).status_code == 204


async def test_a_slot_needs_a_site(admin: Client) -> None:
    site = await admin.make_site()
    slot = await admin.make_placement(delivery="contextual", siteId=site["id"])
    plain = await admin.make_placement()

    for answer in (
        await admin.post("/admin/placements", json=placement_body(delivery="contextual")),
        await admin.patch(f"/admin/placements/{plain['id']}", json={"delivery": "contextual"}),
        await admin.patch(f"/admin/placements/{slot['id']}", json={"siteId": None}),
    ):
        errors = problem(answer, 400, "VALIDATION_FAILED")["errors"]
        assert [error["field"] for error in errors] == ["siteId"]


async def test_an_imported_slot_needs_a_site_too(admin: Client) -> None:
    slot = {"slug": "aside", "label": "Aside", "layoutType": "popup", "delivery": "contextual"}

    refused = await admin.post("/admin/import", json={"placements": [slot]})
    site = {"key": "magazine", "domain": "magazine.example.com"}
    taken = await admin.post(
        "/admin/import", json={"sites": [site], "placements": [{**slot, "siteId": "magazine"}]}
    )

    (error,) = problem(refused, 400, "VALIDATION_FAILED")["errors"]
    assert error["field"].endswith("siteId")
    assert taken.status_code == 200, taken.text
