"""The queries and contents of reports, and how they are written as JSON or CSV.

Ratios come from sums, never from ratios. Money in several currencies is never added up: the summary of such rows has
no money, and there is one more summary per currency.
"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.core.formula import quote_formula
from adloom.sync.figures import ZERO, Figures, compute_ratio, compute_ratios
from adloom.sync.words import AdSource, EntityStatus, Level

# The names of figures, which can be added up, and of the ratios computed from them.
FIGURES: Final = (
    *("spend", "impressions", "linkClicks", "contentViews", "addToCart", "checkoutInitiated"),
    *("purchases", "purchaseValue"),
)
RATIOS: Final = ("cpm", "ctr", "cpc", "costPerPurchase", "roas")
PAGE_FIGURES: Final = ("adSpend", *FIGURES[1:], "ordersCount", "revenue")
PAGE_RATIOS: Final = ("cpm", "ctr", "costPerPurchase", "roas", "cr1", "cr2", "cr3")
# Amounts of money, and ratios computed from them.
MONEY: Final = frozenset(
    {"spend", "adSpend", "purchaseValue", "revenue", "cpm", "cpc", "costPerPurchase", "roas"}
)

# Column values by name.
Cells = dict[str, Any]
SumUp = Callable[[Sequence[Cells]], Cells]


class ReportQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The seller, entities and days (inclusive) of a report."""

    seller_id: UUID
    level: Level
    first: date
    last: date
    campaign_id: UUID | None = None
    adset_id: UUID | None = None
    ad_account_id: UUID | None = None
    sellpage_id: UUID | None = None
    status: EntityStatus | None = None
    currency: str | None = None
    search: str | None = None


class PageQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The seller, sell pages and days (inclusive) of a report."""

    seller_id: UUID
    first: date
    last: date
    ad_source: AdSource | None = None
    search: str | None = None


class ReportRow(msgspec.Struct, frozen=True, kw_only=True):
    """An entity, and its figures in the currency of its account."""

    entity: Cells
    currency: str
    figures: Figures


class PageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A sell page and one source of visitors, with figures and their currencies."""

    entity: Cells
    currencies: tuple[str, ...]
    figures: Figures
    orders_count: int
    revenue: Decimal


class Order(msgspec.Struct, frozen=True):
    """The column to sort by, under its public name."""

    column: str
    is_descending: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Rows, their sums, and the sums by currency."""

    rows: Sequence[Cells]
    summary: Cells
    summaries: Sequence[Cells]


def build_entity_report(rows: Sequence[ReportRow], order: Order) -> Report:
    return _build_report(
        [((row.currency,), row.entity | build_entity_cells(row.figures)) for row in rows],
        order,
        lambda cells: build_entity_cells(_sum_figures(cells, spend="spend")),
    )


def build_page_report(rows: Sequence[PageRow], order: Order) -> Report:
    return _build_report(
        [
            (row.currencies, row.entity | build_page_cells(row.figures, row.orders_count, row.revenue))
            for row in rows
        ],
        order,
        lambda cells: build_page_cells(
            _sum_figures(cells, spend="adSpend"), _sum(cells, "ordersCount"), _sum(cells, "revenue")
        ),
    )


def build_entity_cells(figures: Figures) -> Cells:
    ratios = msgspec.structs.astuple(compute_ratios(figures))
    return dict(zip((*FIGURES, *RATIOS), (*msgspec.structs.astuple(figures), *ratios), strict=True))


def build_page_cells(figures: Figures, orders_count: int, revenue: Decimal) -> Cells:
    ctr = compute_ratio(figures.link_clicks, figures.impressions)
    values = (
        *(*msgspec.structs.astuple(figures), orders_count, revenue),
        *(
            compute_ratio(figures.spend * 1000, figures.impressions),
            ctr,
            compute_ratio(figures.spend, figures.purchases),
        ),
        *(compute_ratio(revenue, figures.spend), ctr, compute_ratio(figures.purchases, figures.link_clicks)),
        compute_ratio(figures.purchases, figures.content_views),
    )
    return dict(zip((*PAGE_FIGURES, *PAGE_RATIOS), values, strict=True))


def sort_rows(rows: Sequence[Cells], order: Order) -> list[Cells]:
    """Sort rows; nulls come last in both directions, and ids break ties."""

    def place(row: Cells) -> Any:  # noqa: ANN401 - whatever a column holds
        value = row[order.column]
        return value.casefold() if isinstance(value, str) else value

    by_id = sorted(rows, key=lambda row: row["id"])
    known = [row for row in by_id if row[order.column] is not None]
    unknown = [row for row in by_id if row[order.column] is None]
    return [*sorted(known, key=place, reverse=order.is_descending), *unknown]


def _build_report(rows: Sequence[tuple[tuple[str, ...], Cells]], order: Order, sum_up: SumUp) -> Report:
    all_currencies = sorted({currency for currencies, _ in rows for currency in currencies})
    summary = sum_up([cells for _, cells in rows])
    return Report(
        rows=sort_rows(
            [cells if len(currencies) <= 1 else _hide_money(cells) for currencies, cells in rows], order
        ),
        summary={
            "currency": all_currencies[0] if len(all_currencies) == 1 else None,
            **(summary if len(all_currencies) <= 1 else _hide_money(summary)),
        },
        summaries=[
            {"currency": currency, **sum_up([cells for own, cells in rows if own == (currency,)])}
            for currency in all_currencies
            if any(own == (currency,) for own, _ in rows)
        ],
    )


def _hide_money(cells: Cells) -> Cells:
    return {name: None if name in MONEY else value for name, value in cells.items()}


def _sum_figures(rows: Sequence[Cells], *, spend: str) -> Figures:
    sums = (_sum(rows, name) for name in (spend, *FIGURES[1:]))
    return Figures(**dict(zip(Figures.__struct_fields__, sums, strict=True)))


def _sum(rows: Iterable[Cells], name: str) -> Any:  # noqa: ANN401 - counts are integers, money is decimal
    return sum((row[name] for row in rows), ZERO if name in MONEY else 0)


_encode = msgspec.json.Encoder(decimal_format="number").encode


def encode_json(report: Report, *, level: str, first: date, last: date) -> bytes:
    return _encode(
        {
            "rows": report.rows,
            "summary": report.summary,
            "summaries": report.summaries,
            "meta": {"dateFrom": first, "dateTo": last, "level": level, "totalRows": len(report.rows)},
        }
    )


def encode_csv(report: Report, columns: Sequence[str]) -> bytes:
    """Encode the rows (RFC 4180), without sums: a spreadsheet can add up."""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(_format_row(row, columns) for row in report.rows)
    return sheet.getvalue().encode()


def _format_row(row: Cells, columns: Sequence[str]) -> list[str]:
    return [_format_cell(row[column]) for column in columns]


def _format_cell(value: Any) -> str:  # noqa: ANN401 - whatever a report shows
    match value:
        case None:
            return ""
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        case str():
            return quote_formula(value)
        case _:
            return str(value)
