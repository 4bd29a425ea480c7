"""A day is written `YYYY-MM-DD` wherever the API reads one; other forms of ISO 8601 are refused by the field's name."""

from adloom.app.control import build_openapi_document
from tests.support.builders import UNKNOWN_ID
from tests.support.control import Client, error_fields, problem
from tests.support.for_each import for_each

OTHER_FORMS = [
    "20261119",
    "2026-W47-4",
    "2026W474",
    "2026-11-19T00:00:00Z",
    "1795046400",
    "2026-11-31",
    "2026-1-5",
    " 2026-11-19",
]


def queries_of_days() -> list[tuple[str, str]]:
    return [
        (path, one["name"])
        for path, item in build_openapi_document()["paths"].items()
        for one in item.get("get", {}).get("parameters", ())
        if "date" in {part.get("format") for part in one["schema"].get("anyOf", [one["schema"]])}
    ]


@for_each("text", OTHER_FORMS)
async def test_a_query_takes_no_other_form_of_a_day(text: str, admin: Client) -> None:
    assert len(queries_of_days()) > 10

    for path, name in queries_of_days():
        seller = {"sellerId": str(UNKNOWN_ID)} if path.startswith("/api/ads-manager") else {}
        answer = await admin.get(path, params={name: text, **seller})

        assert name in error_fields(problem(answer, 400, "VALIDATION_FAILED")), path


@for_each("value", [*OTHER_FORMS, 1795046400, 0])
async def test_a_body_takes_no_other_form_of_a_day(value: str | int, admin: Client) -> None:
    refund = {"amountPaisa": 1, "reason": "A mistake", "day": value}

    refused = await admin.post(f"/admin/campaigns/{UNKNOWN_ID}/refunds", json=refund)
    not_synced = await admin.post("/api/ads-manager/sync", json={"sellerId": str(UNKNOWN_ID), "date": value})

    assert problem(refused, 400, "VALIDATION_FAILED")["errors"] == [
        {"field": "day", "message": "must be a day like 2026-11-15"}
    ]
    assert error_fields(problem(not_synced, 400, "VALIDATION_FAILED")) == {"date"}


@for_each("text", ["202611", "2026-W4", "2026-13", "2026-1"])
async def test_a_statement_takes_no_other_form_of_a_month(text: str, admin: Client) -> None:
    answer = await admin.get(f"/admin/publishers/{UNKNOWN_ID}/statement", params={"month": text})

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"month"}
