"""The monthly statement of a publisher over HTTP: what each of its placements has earned."""

import calendar
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from fastapi import Query, Request
from pydantic import BeforeValidator, Field, WithJsonSchema

from adloom.catalog.publisher import publishers
from adloom.core.clock import parse_day
from adloom.core.formula import quote_formula
from adloom.core.money import Micros, decimal_from_micros, split_paisa
from adloom.resource.api import CurrentCatalog, PublisherReads, make_catalog_router
from adloom.runtime.http.api.dependencies import Database, Now
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.http.api.sheets import ALSO_CSV, CSV, AcceptHeader, SheetFormat, answer_file, wants_csv
from adloom.runtime.postgres import Pool
from adloom.stats.model import Grouping, StatsQuestion, StatsRow
from adloom.stats.store import read_statistics

ROWS_MAX: Final = 100_000
ONE_DAY: Final = timedelta(days=1)
COUNTED: Final = ("Impressions", "Clicks", "Invalid impressions", "Invalid clicks")
NAMES: Final = """
    SELECT placement.public_id, placement.slug, placement.label, site.domain
      FROM placements AS placement
      LEFT JOIN sites AS site ON site.id = placement.site_id
     WHERE placement.public_id = ANY ($1)
"""
DELETED_NAMES: Final = "SELECT public_id, slug FROM placements_ever WHERE public_id = ANY ($1)"


def _parse_month(value: object) -> object:
    try:
        return parse_day(f"{value}-01")
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
    invalid_impressions: Annotated[int, Field(description="Of `impressions`; they are not billed.")]
    invalid_clicks: Annotated[int, Field(description="Of `clicks`; they are not billed.")]
    charged_paisa: Annotated[
        int | None,
        Field(
            description="What advertisers paid, without campaigns of the house; null for publishers themselves."
        ),
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
    charged: dict[object, Micros] | None = None
    if scope.account_id is None:
        gross = await read_statistics(
            pool, msgspec.structs.replace(question, is_shared=False), today=now.date(), rows_max=ROWS_MAX
        )
        charged = {row.key[0]: row.counts.spend or Micros(0) for row in gross}
    names = await _read_names(pool, [row.key[0] for row in rows])
    items = [
        StatementItem(**names[row.key[0]], **figures)
        for row, figures in zip(rows, _list_figures(rows, charged), strict=True)
    ]
    answer = StatementAnswer(
        publisher_id=publisher_id,
        name=publisher.name,
        month=f"{first:%Y-%m}",
        first=first,
        last=last,
        is_final=now.date() > last,
        currency=request.app.state.currency.code or None,
        revenue_share_percent=publisher.revenue_share_percent,
        items=items,
        totals=_sum_items(items, sees_charges=charged is not None),
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


def _list_figures(
    rows: Sequence[StatsRow], charged: Mapping[object, Micros] | None
) -> Iterator[dict[str, Any]]:
    """Yield the figures of each row; its amounts add up to their sum, which is rounded down."""
    revenues = split_paisa([row.counts.spend or Micros(0) for row in rows])
    gross = None if charged is None else split_paisa([charged[row.key[0]] for row in rows])
    for place, row in enumerate(rows):
        yield {
            "impressions": row.counts.impressions,
            "clicks": row.counts.clicks,
            "invalid_impressions": row.counts.invalid_impressions,
            "invalid_clicks": row.counts.invalid_clicks,
            "charged_paisa": None if gross is None else gross[place],
            "revenue_paisa": revenues[place],
        }


def _sum_items(items: Sequence[StatementItem], *, sees_charges: bool) -> StatementFigures:
    return StatementFigures(
        impressions=sum(one.impressions for one in items),
        clicks=sum(one.clicks for one in items),
        invalid_impressions=sum(one.invalid_impressions for one in items),
        invalid_clicks=sum(one.invalid_clicks for one in items),
        charged_paisa=sum(one.charged_paisa or 0 for one in items) if sees_charges else None,
        revenue_paisa=sum(one.revenue_paisa for one in items),
    )


def _encode_csv(answer: StatementAnswer) -> bytes:
    """Encode a statement for a spreadsheet: amounts in units, with the currency in their heads."""
    unit = f" ({answer.currency})" if answer.currency else ""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(["Month", "Placement", "Slug", "Site", *COUNTED, f"Revenue{unit}"])
    for one in answer.items:
        texts = [quote_formula(text or "") for text in (one.label or one.slug, one.slug, one.site)]
        writer.writerow([answer.month, *texts, *_list_cells(one)])
    writer.writerow([answer.month, "Total", "", "", *_list_cells(answer.totals)])
    return sheet.getvalue().encode()


def _list_cells(one: StatementFigures) -> list[object]:
    counted = (one.impressions, one.clicks, one.invalid_impressions, one.invalid_clicks)
    return [*counted, _write_amount(one.revenue_paisa)]


def _write_amount(paisa: int) -> str:
    return f"{decimal_from_micros(Micros(paisa * 10_000)):.2f}"
