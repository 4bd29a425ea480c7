"""The monthly statement of a publisher over HTTP: what each of its placements has earned."""

import calendar
import csv
import io
from datetime import date, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from fastapi import Query, Request
from pydantic import BeforeValidator, Field, WithJsonSchema

from adloom.catalog.publisher import publishers
from adloom.core.formula import quote_formula
from adloom.core.money import Micros, decimal_from_micros, paisa_from_micros
from adloom.resource.api import CurrentCatalog, PublisherReads, make_catalog_router
from adloom.runtime.http.api.dependencies import Database, Now
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.http.api.sheets import ALSO_CSV, CSV, AcceptHeader, SheetFormat, answer_file, wants_csv
from adloom.runtime.postgres import Pool
from adloom.stats.model import Counts, Grouping, StatsQuestion, sum_rows
from adloom.stats.store import read_statistics

ROWS_MAX: Final = 100_000
ONE_DAY: Final = timedelta(days=1)
NAMES: Final = """
    SELECT placement.public_id, placement.slug, placement.label, site.domain
      FROM placements AS placement
      LEFT JOIN sites AS site ON site.id = placement.site_id
     WHERE placement.public_id = ANY ($1)
"""
DELETED_NAMES: Final = "SELECT public_id, slug FROM placements_ever WHERE public_id = ANY ($1)"


def _parse_month(value: object) -> object:
    try:
        return date.fromisoformat(f"{value}-01")
    except ValueError as error:
        raise ValueError("must be a month like 2026-10") from error


Month = Annotated[
    date, BeforeValidator(_parse_month), WithJsonSchema({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"})
]


class StatementQuery(Body):
    """Which month, by UTC days."""

    month: Annotated[Month | None, Field(description="Without it, the last whole one.")] = None
    format: Annotated[SheetFormat | None, Field(description="Without it, as `Accept` says.")] = None


class StatementFigures(Answer):
    """What was seen, and what it earned."""

    impressions: int
    clicks: int
    charged_paisa: Annotated[
        int | None, Field(description="What advertisers paid; null for publishers themselves.")
    ]
    revenue_paisa: Annotated[int, Field(description="The publisher's share of it.")]


class StatementItem(StatementFigures):
    """What a placement has earned."""

    placement_id: UUID
    slug: str
    label: Annotated[str | None, Field(description="Null for a deleted placement.")]
    site: str | None


class StatementAnswer(Answer):
    """A month of a publisher. Each day has the share that was set then, and refunds count when they are made."""

    publisher_id: UUID
    name: str
    month: str
    first: date
    last: date
    is_final: Annotated[bool, Field(description="False while the month goes on.")]
    currency: str | None
    revenue_share_percent: Annotated[int, Field(description="The share of today.")]
    items: list[StatementItem]
    totals: StatementFigures


router = make_catalog_router("/admin/publishers/{publisher_id}/statement", tag="publishers")


@router.get("", response_model=StatementAnswer, responses=ALSO_CSV)
async def publisher_statement(  # noqa: PLR0913, PLR0917 - all that the route depends on
    publisher_id: UUID,
    query: Annotated[StatementQuery, Query()],
    request: Request,
    scope: PublisherReads,
    catalog: CurrentCatalog,
    pool: Database,
    now: Now,
    accept: AcceptHeader = "",
) -> Any:  # noqa: ANN401 - a model or a file
    """Say what the placements of a publisher have earned in a month; a publisher sees its own."""
    async with catalog.read() as connection:
        publisher = await publishers.table.find(connection, scope, publisher_id)
    first = query.month or (now.date().replace(day=1) - ONE_DAY).replace(day=1)
    last = first.replace(day=calendar.monthrange(first.year, first.month)[1])
    question = StatsQuestion(
        first=first,
        last=last,
        groupings=(Grouping.PLACEMENT,),
        publisher_id=publisher_id,
        counts_refunds_when_made=True,
    )
    rows = await read_statistics(pool, question, today=now.date(), rows_max=ROWS_MAX)
    charged: dict[object, Counts] = {}
    charged_total: Micros | None = None
    if scope.account_id is None:
        gross = await read_statistics(
            pool, msgspec.structs.replace(question, is_shared=False), today=now.date(), rows_max=ROWS_MAX
        )
        charged = {row.key[0]: row.counts for row in gross}
        charged_total = sum_rows(gross).spend
    names = await _read_names(pool, [row.key[0] for row in rows])
    answer = StatementAnswer(
        publisher_id=publisher_id,
        name=publisher.name,
        month=f"{first:%Y-%m}",
        first=first,
        last=last,
        is_final=now.date() > last,
        currency=request.app.state.currency.code or None,
        revenue_share_percent=publisher.revenue_share_percent,
        items=[
            StatementItem(
                **names[row.key[0]],
                **_list_figures(row.counts, charged[row.key[0]].spend if charged else None),
            )
            for row in rows
        ],
        totals=StatementFigures(**_list_figures(sum_rows(rows), charged_total)),
    )
    if not wants_csv(query.format, accept):
        return answer
    name = f"adloom-statement-{answer.month}.csv"
    return answer_file(_encode_csv(answer), CSV, name)


async def _read_names(pool: Pool, placement_ids: list[Any]) -> dict[object, dict[str, Any]]:
    found: dict[object, dict[str, Any]] = {
        row["public_id"]: {"placement_id": row["public_id"], "slug": row["slug"], "label": None, "site": None}
        for row in await pool.fetch(DELETED_NAMES, placement_ids)
    }
    for row in await pool.fetch(NAMES, placement_ids):
        found[row["public_id"]] |= {"label": row["label"], "site": row["domain"]}
    return found


def _list_figures(counts: Counts, charged: Micros | None) -> dict[str, Any]:
    return {
        "impressions": counts.impressions,
        "clicks": counts.clicks,
        "charged_paisa": None if charged is None else paisa_from_micros(charged),
        "revenue_paisa": paisa_from_micros(counts.spend or Micros(0)),
    }


def _encode_csv(answer: StatementAnswer) -> bytes:
    """Encode a statement for a spreadsheet: amounts in units, with the currency in their heads."""
    unit = f" ({answer.currency})" if answer.currency else ""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(["Month", "Placement", "Slug", "Site", "Impressions", "Clicks", f"Revenue{unit}"])
    for one in answer.items:
        texts = [quote_formula(text or "") for text in (one.label or one.slug, one.slug, one.site)]
        writer.writerow([answer.month, *texts, one.impressions, one.clicks, _write_amount(one.revenue_paisa)])
    totals = answer.totals
    writer.writerow(
        [
            answer.month,
            "Total",
            "",
            "",
            totals.impressions,
            totals.clicks,
            _write_amount(totals.revenue_paisa),
        ]
    )
    return sheet.getvalue().encode()


def _write_amount(paisa: int) -> str:
    return f"{decimal_from_micros(Micros(paisa * 10_000)):.2f}"
