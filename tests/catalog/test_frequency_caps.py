"""Frequency caps over HTTP: several per banner, one per window, and their access."""

from typing import Any

from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from tests.support.builders import UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane, error_fields, problem

PATH = "/api/v1/admin/frequency/caps"


async def listed(client: Client, **params: Any) -> list[Json]:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_cap_is_created_read_listed_and_deleted(admin: Client) -> None:
    banner = await admin.make_banner()

    cap = await admin.make_cap(banner, maxImpressionsPerUser=3, window="Week")

    assert (cap["adId"], cap["maxImpressionsPerUser"], cap["window"]) == (banner["id"], 3, "Week")
    assert (await admin.get(f"{PATH}/{cap['id']}")).json() == cap
    assert await listed(admin) == [cap]
    assert (await admin.delete(f"{PATH}/{cap['id']}")).status_code == 204
    problem(await admin.get(f"{PATH}/{cap['id']}"), 404, "FREQUENCY_CAP_NOT_FOUND")
    problem(await admin.delete(f"{PATH}/{cap['id']}"), 404, "FREQUENCY_CAP_NOT_FOUND")
    assert await listed(admin) == []


async def test_a_banner_has_several_caps_but_one_for_each_window(admin: Client) -> None:
    banner, other = await admin.make_banner(), await admin.make_banner()
    windows = ["Hour", "Day", "Week", "Month", "Lifetime"]
    caps = [await admin.make_cap(banner, window=window) for window in windows]
    await admin.make_cap(other)

    again = await admin.post(PATH, json={"adId": banner["id"], "maxImpressionsPerUser": 9, "window": "Day"})

    problem(again, 409, "FREQUENCY_CAP_EXISTS")
    assert await listed(admin, adId=banner["id"]) == caps
    assert len(await listed(admin)) == 6


async def test_a_cap_needs_an_existing_banner(admin: Client) -> None:
    deleted = await admin.make_banner()
    await admin.delete(f"/admin/banners/{deleted['id']}")

    for banner_id, status, code in (
        (str(UNKNOWN_ID), 404, "BANNER_NOT_FOUND"),
        (deleted["id"], 409, "BANNER_ALREADY_DELETED"),
    ):
        body = {"adId": banner_id, "maxImpressionsPerUser": 3}
        problem(await admin.post(PATH, json=body), status, code)


async def test_a_change_raises_the_version_touches_the_banner_and_is_in_the_trail(
    admin: Client, pool: Pool
) -> None:
    banner = await admin.make_banner()
    before: int = await pool.fetchval("SELECT version FROM catalog_version")

    cap = await admin.make_cap(banner, window="Hour")
    await admin.delete(f"{PATH}/{cap['id']}")

    rows = await pool.fetch(
        """
        SELECT changed.version, banners.public_id::text AS id FROM catalog_changes AS changed
          JOIN banners ON banners.id = changed.noun_key AND changed.noun = 'banner'
         WHERE changed.version > $1 ORDER BY 1
        """,
        before,
    )
    assert [(row["version"], row["id"]) for row in rows] == [
        (before + 1, banner["id"]),
        (before + 2, banner["id"]),
    ]
    trail = (await admin.get("/admin/audit", params={"noun": "frequency_cap", "nounId": cap["id"]})).json()
    assert [entry["action"] for entry in trail["items"]] == ["delete", "create"]
    assert trail["items"][1]["changes"]["window"] == {"from": None, "to": "Hour"}


async def test_a_cap_is_changed_field_by_field_and_not_moved_to_another_banner(
    admin: Client, pool: Pool
) -> None:
    banner, other = await admin.make_banner(), await admin.make_banner()
    cap = await admin.make_cap(banner, maxImpressionsPerUser=3, window="Week")
    await admin.make_cap(banner, window="Hour")
    before: int = await pool.fetchval("SELECT version FROM catalog_version")

    changed = (await admin.patch(f"{PATH}/{cap['id']}", json={"maxImpressionsPerUser": 5})).json()

    assert changed == {**cap, "maxImpressionsPerUser": 5, "updatedAt": changed["updatedAt"]}
    assert (await admin.get(f"{PATH}/{cap['id']}")).json() == changed
    assert await pool.fetchval("SELECT version FROM catalog_version") == before + 1
    problem(await admin.patch(f"{PATH}/{cap['id']}", json={"window": "Hour"}), 409, "FREQUENCY_CAP_EXISTS")
    for wrong in ({"maxImpressionsPerUser": 0}, {"window": "Fortnight"}, {"adId": other["id"]}):
        answer = await admin.patch(f"{PATH}/{cap['id']}", json=wrong)
        assert error_fields(answer.json()) == set(wrong), answer.text
    assert (await admin.get(f"{PATH}/{cap['id']}")).json() == changed


async def test_an_advertiser_caps_only_its_own_banners(admin: Client, control: ControlPlane) -> None:
    advertiser = control.acting_as(Role.ADVERTISER)
    own = await advertiser.make_cap(await advertiser.make_banner())
    theirs = await admin.make_banner()
    other = await admin.make_cap(theirs)

    assert await listed(advertiser) == [own]
    assert await listed(advertiser, adId=theirs["id"]) == []
    problem(await advertiser.get(f"{PATH}/{other['id']}"), 404, "FREQUENCY_CAP_NOT_FOUND")
    problem(await advertiser.delete(f"{PATH}/{other['id']}"), 404, "FREQUENCY_CAP_NOT_FOUND")
    stolen = await advertiser.post(PATH, json={"adId": theirs["id"], "maxImpressionsPerUser": 1})
    problem(stolen, 404, "BANNER_NOT_FOUND")
    trail = (await advertiser.get("/admin/audit", params={"noun": "frequency_cap"})).json()
    assert [entry["nounId"] for entry in trail["items"]] == [own["id"]]
    async with control.acting_as(Role.PUBLISHER) as publisher:
        problem(await publisher.get(PATH), 403, "FORBIDDEN")
    async with control.acting_as(Role.VIEWER) as viewer:
        assert len(await listed(viewer)) == 2
        problem(await viewer.delete(f"{PATH}/{own['id']}"), 403, "FORBIDDEN")


async def test_a_cap_deleted_by_another_user_is_not_found(admin: Client) -> None:
    cap = await admin.make_cap(await admin.make_banner())
    tag = (await admin.get(f"{PATH}/{cap['id']}")).headers["ETag"]

    stale = await admin.delete(f"{PATH}/{cap['id']}", headers={"If-Match": '"2026-11-15T11:00:00Z"'})
    first = await admin.delete(f"{PATH}/{cap['id']}", headers={"If-Match": tag})

    problem(stale, 409, "STALE_WRITE")
    assert first.status_code == 204


async def test_the_auction_scoring_of_a_placement_can_be_chosen(admin: Client) -> None:
    placement = await admin.make_placement(delivery="auction")
    path = f"/admin/placements/{placement['id']}"

    changed = (await admin.patch(path, json={"auctionScoring": "learned"})).json()

    assert (placement["auctionScoring"], changed["auctionScoring"]) == ("heuristic", "learned")
    assert (await admin.get(path)).json() == changed
    answer = await admin.patch(path, json={"auctionScoring": "guessed"})
    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"auctionScoring"}
