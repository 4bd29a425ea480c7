"""Statistics as CSV: the same figures, for spreadsheets."""

import csv
import io

import httpx

from adloom.core.currency import Currency
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane, problem
from tests.support.for_each import for_each

QUERY = {"from": "2026-11-14", "to": "2026-11-15"}


async def sheet(client: Client, **params: str) -> httpx.Response:
    answer = await client.get("/admin/stats/banners", params={**QUERY, "format": "csv", **params})
    assert answer.status_code == 200, answer.text
    return answer


async def some_events(admin: Client, writer: EventWriter) -> tuple[Json, Json]:
    banner, placement = await admin.make_banner(), await admin.make_placement()
    await writer.write(
        *[seen(banner, placement, country="DE", device="mobile")] * 4,
        clicked(banner, placement, country="DE", device="mobile", is_valid=False),
        seen(banner, placement),
    )
    return banner, placement


async def test_a_csv_sheet_has_the_names_and_figures_of_the_json(admin: Client, writer: EventWriter) -> None:
    banner, placement = await some_events(admin, writer)

    answer = await sheet(admin, groupBy="day,hour,banner,placement,campaign,country,device")

    place = f"2026-11-14,2026-11-14T12:00:00Z,{banner['id']},{placement['id']},"
    names = f"{banner['title']},{placement['label']},"
    assert answer.content.decode() == (
        "date,hour,bannerId,placementId,campaignId,country,device,bannerTitle,placementLabel,campaignName,"
        "impressions,clicks,ctr,spendPaisa,invalidImpressions,invalidClicks,unboundImpressions,unboundClicks,"
        "overBudgetClicks,conversions,conversionValue,spend,currency\r\n"
        f"{place},DE,mobile,{names},4,1,0.25,,0,1,0,0,,0,0,,\r\n"
        f"{place},,,{names},1,0,0.0,,0,0,0,0,,0,0,,\r\n"
    )
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == (
        'attachment; filename="adloom-banners-2026-11-14-to-2026-11-15.csv"'
    )


@for_each(
    "groupings", ["day", "hour", "banner", "placement", "campaign", "country", "device", "device,country,day"]
)
async def test_a_csv_sheet_equals_the_json(admin: Client, writer: EventWriter, groupings: str) -> None:
    await some_events(admin, writer)
    answer = await admin.get("/admin/stats/banners", params={**QUERY, "groupBy": groupings})

    rows = list(csv.DictReader(io.StringIO((await sheet(admin, groupBy=groupings)).text, newline="")))

    assert rows == [
        {name: "" if value is None else str(value) for name, value in item.items()}
        | {"spend": "" if item["spendPaisa"] is None else "0.00", "currency": ""}
        for item in answer.json()["items"]
    ]


async def test_a_csv_sheet_without_events_has_its_header(admin: Client) -> None:
    header = (
        "date,impressions,clicks,ctr,spendPaisa,"
        "invalidImpressions,invalidClicks,unboundImpressions,unboundClicks,overBudgetClicks,"
        "conversions,conversionValue,spend,currency"
    )
    assert (await sheet(admin)).text.splitlines() == [header]


async def test_names_in_a_sheet_are_no_formulas_and_money_has_its_currency(
    admin: Client, writer: EventWriter, control: ControlPlane
) -> None:
    control.app.state.currency = Currency("EUR")
    banner = await admin.make_banner(title='=HYPERLINK("https://example.com")')
    await writer.write(seen(banner, await admin.make_placement()))

    [row] = csv.DictReader(io.StringIO((await sheet(admin, groupBy="banner")).text, newline=""))

    assert row["bannerTitle"] == '\'=HYPERLINK("https://example.com")'
    assert (row["spendPaisa"], row["spend"], row["currency"]) == ("0", "0.00", "EUR")


@for_each(
    ("accept", "written", "kind"),
    [
        ("text/csv", None, "text/csv"),
        ("text/html, text/csv;q=0.9", None, "text/csv"),
        ("TEXT/CSV", None, "text/csv"),
        ("*/*", None, "application/json"),
        ("application/json, text/csv", None, "application/json"),
        ("text/csv", "json", "application/json"),
        ("application/json", "csv", "text/csv"),
    ],
)
async def test_the_accept_header_may_request_csv_and_the_query_wins(
    admin: Client, accept: str, written: str | None, kind: str
) -> None:
    query = {**QUERY, **({"format": written} if written else {})}

    answer = await admin.get("/admin/stats/banners", params=query, headers={"Accept": accept})

    assert answer.headers["content-type"].startswith(kind)


async def test_an_error_is_problem_details_even_when_csv_was_requested(
    admin: Client, control: ControlPlane
) -> None:
    wrong = await admin.get("/admin/stats/banners", params={**QUERY, "groupBy": "x", "format": "csv"})
    problem(wrong, 400, "VALIDATION_FAILED")
    async with control.client(Accept="text/csv") as anonymous:
        problem(await anonymous.get("/admin/stats/banners", params=QUERY), 401, "UNAUTHENTICATED")


async def test_a_removed_placement_is_called_by_its_slug(admin: Client, writer: EventWriter) -> None:
    _, placement = await some_events(admin, writer)
    assert (await admin.delete(f"/admin/placements/{placement['id']}")).status_code == 204

    rows = list(csv.DictReader(io.StringIO((await sheet(admin, groupBy="placement")).text, newline="")))

    assert [(row["placementId"], row["placementLabel"]) for row in rows] == [
        (placement["id"], placement["slug"])
    ]


async def test_the_sheet_of_a_publisher_has_its_revenue(
    admin: Client, publisher: Client, writer: EventWriter
) -> None:
    placement = await publisher.make_placement()
    await writer.write(seen(await admin.make_banner(), placement))

    sheets = [await sheet(client, groupBy="placement") for client in (admin, publisher)]

    heads = [answer.text.partition("\r\n")[0].split(",") for answer in sheets]
    assert {"spend", "spendPaisa"} <= set(heads[0])
    assert {"revenue", "revenuePaisa"} <= set(heads[1])
    assert [name.replace("revenue", "spend") for name in heads[1]] == heads[0]
    assert sheets[0].text.partition("\r\n")[2] != ""
