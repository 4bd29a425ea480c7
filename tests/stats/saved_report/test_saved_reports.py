"""Saved reports over HTTP: whose they are, what they show, and what is refused."""

from tests.stats.event_writer import EventWriter, clicked, seen
from tests.stats.saved_report.people import PATH, a_person, logged_in
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane, error_fields, problem


async def test_a_report_is_saved_opened_renamed_and_deleted(
    control: ControlPlane, admin: Client, writer: EventWriter
) -> None:
    ann = await a_person(admin, timeZone="Pacific/Auckland")
    banner, placement = await admin.make_banner(title="=Tulips"), await admin.make_placement(label="Front")
    campaign = await admin.make_campaign(name="Spring")
    await writer.write(*[seen(banner, placement, campaign)] * 3, clicked(banner, placement, campaign))
    async with logged_in(control, ann) as client:
        made = await client.made(
            PATH,
            {
                "name": "Client A",
                "groupBy": ["day", "banner"],
                "period": "yesterday",
                "isCompared": True,
                "campaignId": campaign["id"],
                "columns": ["clicks", "spend"],
            },
        )
        path = f"{PATH}/{made['id']}"
        shown = (await client.get(f"{path}/statistics")).json()
        sheet = await client.get(f"{path}/statistics", params={"format": "csv"})
        other = await client.get(path)
        renamed = await client.patch(path, json={"name": "A"}, headers={"If-Match": other.headers["etag"]})
        stale = await client.patch(path, json={"name": "B"}, headers={"If-Match": other.headers["etag"]})
        listed = (await client.get(PATH, params={"search": "a", "sort": "name"})).json()
        taken = await client.post(PATH, json={"name": "a"})
        gone = await client.delete(path)
        missing = await client.get(path)

    assert (made["sendEvery"], made["nextSendAt"], made["canBeMailed"]) == (None, None, False)
    # Noon of the 15th is already the 16th in Auckland, and noon of the 14th its 15th.
    assert (shown["from"], shown["to"], shown["timeZone"]) == ("2026-11-15", "2026-11-15", "Pacific/Auckland")
    assert [(one["date"], one["bannerTitle"]) for one in shown["items"]] == [("2026-11-15", "=Tulips")]
    assert shown["totals"]["impressions"] == 3
    assert shown["before"]["from"] == "2026-11-14"
    assert shown["before"]["totals"]["impressions"] == 0
    assert sheet.text == (
        f"date,bannerId,bannerTitle,clicks,spend,currency\r\n2026-11-15,{banner['id']},'=Tulips,1,0.00,\r\n"
    )
    assert sheet.headers["content-disposition"] == 'attachment; filename="adloom-report-2026-11-15.csv"'
    assert renamed.json()["name"] == "A"
    problem(stale, 409, "STALE_WRITE")
    assert [one["name"] for one in listed["items"]] == ["A"]
    problem(taken, 409, "SAVED_REPORT_NAME_EXISTS")
    assert gone.status_code == 204
    problem(missing, 404, "SAVED_REPORT_NOT_FOUND")


async def test_a_report_is_its_owners_alone(control: ControlPlane, admin: Client) -> None:
    ann, bob = await a_person(admin), await a_person(admin, "viewer")
    async with logged_in(control, ann) as client:
        made = await client.made(PATH, {"name": "Mine"})
    async with logged_in(control, bob) as other:
        path = f"{PATH}/{made['id']}"
        answers = [
            await other.get(path),
            await other.patch(path, json={"name": "Stolen"}),
            await other.delete(path),
            await other.get(f"{path}/statistics"),
        ]
        own = await other.made(PATH, {"name": "Mine"})
        listed = (await other.get(PATH)).json()
        forbidden = await other.post(PATH, json={"name": "Out", "recipients": ["eve@example.com"]})

    for answer in answers:
        problem(answer, 404, "SAVED_REPORT_NOT_FOUND")
    assert [one["id"] for one in listed["items"]] == [own["id"]]
    problem(forbidden, 403, "SAVED_REPORT_RECIPIENTS")
    problem(await admin.post(PATH, json={"name": "Mine"}), 403, "SAVED_REPORT_OF_MACHINE")
    problem(await admin.get(f"{PATH}/{made['id']}"), 404, "SAVED_REPORT_NOT_FOUND")
    assert (await admin.get(PATH)).json()["items"] == []


async def test_a_report_shows_what_its_owner_may_see_now(
    control: ControlPlane, admin: Client, writer: EventWriter
) -> None:
    shop = await admin.make_advertiser()
    placement = await admin.make_placement()
    banner, own = await admin.make_banner(), await admin.make_banner(advertiserId=shop["id"])
    campaign = await admin.make_campaign(advertiserId=shop["id"])
    await writer.write(*[seen(banner, placement)] * 5, seen(own, placement, campaign))
    ann = await a_person(admin)
    await a_person(admin, email="another@example.com")  # The last admin cannot be demoted.
    async with logged_in(control, ann) as client:
        path = f"{PATH}/{(await client.made(PATH, {'name': 'All', 'groupBy': ['banner']}))['id']}/statistics"
        as_admin = (await client.get(path)).json()

    role = {"role": "advertiser", "accountId": shop["id"]}
    demoted = (await admin.put(f"/admin/accounts/{ann['id']}/role", json=role)).json()
    async with logged_in(control, demoted, epoch=1) as client:
        as_advertiser = (await client.get(path)).json()

    assert as_admin["totals"]["impressions"] == 6
    assert as_advertiser["totals"]["impressions"] == 1
    assert [one["bannerId"] for one in as_advertiser["items"]] == [own["id"]]


WRONG: list[tuple[Json, str]] = [
    ({"name": " "}, "name"),
    ({"groupBy": []}, "groupBy"),
    ({"groupBy": ["day", "day"]}, "groupBy"),
    ({"groupBy": ["moon"]}, "groupBy.0"),
    ({"period": "last_century"}, "period"),
    ({"country": "Germany"}, "country"),
    ({"country": 5}, "country"),
    ({"columns": ["clicks", "clicks"]}, "columns"),
    ({"timeZone": "Mars"}, "timeZone"),
    ({"sendEvery": "hourly"}, "sendEvery"),
    ({"sendHour": 24}, "sendHour"),
    ({"sendWeekday": 0}, "sendWeekday"),
    ({"recipients": ["ann@example.com, eve@example.com"]}, "recipients.0"),
    ({"recipients": ["ann@example.com\nBcc: eve@example.com"]}, "recipients.0"),
    ({"recipients": ["a@example.com"] * 2}, "recipients"),
]


async def test_errors_are_reported_by_field(control: ControlPlane, admin: Client) -> None:
    ann = await a_person(admin)
    async with logged_in(control, ann) as client:
        answers = [await client.post(PATH, json={"name": "Mine", **fields}) for fields, _ in WRONG]

    found = [error_fields(problem(answer, 400, "VALIDATION_FAILED")) for answer in answers]
    assert found == [{field} for _, field in WRONG]
