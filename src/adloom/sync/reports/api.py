"""Reports over HTTP."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response
from pydantic import Field, field_validator

from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.resource.access import Scope
from adloom.runtime.http.api.dependencies import Database, GuardedRoute, problems
from adloom.runtime.http.api.shapes import Answer, Body, Text255
from adloom.runtime.postgres import Pool
from adloom.sync.api import PREFIX, Day, SellerId, SellerReads
from adloom.sync.hierarchy.model import Currency
from adloom.sync.reports import store
from adloom.sync.reports.encode import encode_csv, encode_json
from adloom.sync.reports.model import (
    FIGURES,
    PAGE_FIGURES,
    PAGE_RATIOS,
    RATIOS,
    Order,
    PageQuestion,
    Report,
    ReportQuestion,
    build_entity_report,
    build_page_report,
)
from adloom.sync.words import AdSource, BudgetType, EntityStatus, Level

JSON: Final = "application/json"
CSV: Final = "text/csv"
ROWS_MAX: Final = 50_000  # An answer is built in memory: this is about 40 MB.
DAYS_MAX: Final = 1_200  # Three years, and a quarter to compare with.
SELLPAGE: Final = "SELLPAGE"
PAGE_COLUMNS: Final = (*store.SELLPAGE_COLUMNS, *PAGE_FIGURES, *PAGE_RATIOS)
COLUMNS: Final = {level: (*store.list_columns(level), *FIGURES, *RATIOS) for level in Level}


class ReportFormat(StrEnum):
    """The format of a report."""

    JSON = "json"
    CSV = "csv"


class RangeQuery(Body):
    """The range of days of a report (inclusive), in the account's time zone."""

    COLUMNS: ClassVar[Sequence[str]] = ()

    date_from: Day
    date_to: Day
    sort: Annotated[Text255, Field(description="Any column; `-` before it for descending.")] = "-spend"
    search: Text255 | None = None
    format: Annotated[ReportFormat | None, Field(description="Without it, as `Accept` says.")] = None
    seller_id: SellerId = None

    @field_validator("sort")
    @classmethod
    def _names_a_column(cls, sort: str) -> str:
        if sort.removeprefix("-") not in cls.COLUMNS:
            raise ValueError(f"must be one of {', '.join(cls.COLUMNS)}, with or without a - before it")
        return sort

    @property
    def order(self) -> Order:
        return Order(self.sort.removeprefix("-"), self.sort.startswith("-"))


class ReportQuery(RangeQuery):
    """Filters of a report on campaigns, ad sets or ads."""

    LEVEL: ClassVar[Level]

    campaign_id: UUID | None = None
    adset_id: UUID | None = None
    ad_account_id: UUID | None = None
    sellpage_id: UUID | None = None
    status: EntityStatus | None = None
    currency: Currency | None = None


class CampaignReportQuery(ReportQuery):
    """Filters of a report on campaigns."""

    LEVEL: ClassVar = Level.CAMPAIGN
    COLUMNS: ClassVar = COLUMNS[Level.CAMPAIGN]


class AdsetReportQuery(ReportQuery):
    """Filters of a report on ad sets."""

    LEVEL: ClassVar = Level.ADSET
    COLUMNS: ClassVar = COLUMNS[Level.ADSET]


class AdReportQuery(ReportQuery):
    """Filters of a report on ads."""

    LEVEL: ClassVar = Level.AD
    COLUMNS: ClassVar = COLUMNS[Level.AD]


class SellpageReportQuery(RangeQuery):
    """Filters of a report on sell pages."""

    COLUMNS: ClassVar = PAGE_COLUMNS

    sort: Annotated[Text255, Field(description="Any column; `-` before it for descending.")] = "-adSpend"
    ad_source: AdSource | None = None


class ReportFigures(Answer):
    """Sums over the days, and ratios of the sums; money is null if there are several currencies."""

    currency: str | None
    spend: float | None
    impressions: int
    link_clicks: int
    content_views: int
    add_to_cart: int
    checkout_initiated: int
    purchases: int
    purchase_value: float | None
    cpm: float | None
    ctr: Annotated[float, Field(description="Link clicks by impressions, a fraction.")]
    cpc: float | None
    cost_per_purchase: float | None
    roas: float | None


class ReportRowAnswer(ReportFigures):
    """A campaign, an ad set or an ad with its figures; it has the fields of its level."""

    id: UUID
    seller_id: UUID
    name: str
    status: EntityStatus
    timezone: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    ad_account_id: UUID | None = None
    sellpage_id: UUID | None = None
    budget: float | None = None
    budget_type: BudgetType | None = None
    external_campaign_id: str | None = None
    campaign_id: UUID | None = None
    external_adset_id: str | None = None
    adset_id: UUID | None = None
    external_ad_id: str | None = None


class ReportMeta(Answer):
    """What was requested, and the number of rows."""

    date_from: date
    date_to: date
    level: str
    total_rows: int


class ReportAnswer(Answer):
    """A report; `summaries` has the sums by currency."""

    rows: list[ReportRowAnswer]
    summary: ReportFigures
    summaries: list[ReportFigures]
    meta: ReportMeta


class SellpageFigures(Answer):
    """Sums over the days, and ratios of the sums; money is null if there are several currencies."""

    currency: str | None
    ad_spend: float | None
    impressions: int
    link_clicks: int
    content_views: int
    add_to_cart: int
    checkout_initiated: int
    purchases: int
    purchase_value: float | None
    orders_count: int
    revenue: float | None
    cpm: float | None
    ctr: float
    cost_per_purchase: float | None
    roas: float | None
    cr1: Annotated[float, Field(description="Link clicks by impressions.")]
    cr2: Annotated[float, Field(description="Purchases by link clicks.")]
    cr3: Annotated[float, Field(description="Purchases by content views.")]


class SellpageRowAnswer(SellpageFigures):
    """A sell page and the source of its visitors; `adSource` is null if no campaign leads to it."""

    id: UUID
    name: str
    url: str | None
    ad_source: AdSource | None


class SellpageReportAnswer(Answer):
    """A report on sell pages; `summaries` has the sums by currency."""

    rows: list[SellpageRowAnswer]
    summary: SellpageFigures
    summaries: list[SellpageFigures]
    meta: ReportMeta


AcceptHeader = Annotated[str, Header(include_in_schema=False)]
AS_A_SHEET: Final[dict[int | str, dict[str, object]]] = {
    200: {"content": {CSV: {"schema": {"type": "string"}}}}
}

router = APIRouter(
    prefix=f"{PREFIX}/reports",
    tags=["ads manager"],
    route_class=GuardedRoute,
    responses=problems(400, 401, 403, 404, 503),
)


@router.get("/campaigns", response_model=ReportAnswer, responses=AS_A_SHEET)
async def report_campaigns(
    query: Annotated[CampaignReportQuery, Query()],
    scope: SellerReads,
    pool: Database,
    accept: AcceptHeader = "",
) -> Response:
    """Report cost and results of campaigns."""
    return await _report_entities(query, scope, pool, accept)


@router.get("/adsets", response_model=ReportAnswer, responses=AS_A_SHEET)
async def report_adsets(
    query: Annotated[AdsetReportQuery, Query()], scope: SellerReads, pool: Database, accept: AcceptHeader = ""
) -> Response:
    """Report cost and results of ad sets."""
    return await _report_entities(query, scope, pool, accept)


@router.get("/ads", response_model=ReportAnswer, responses=AS_A_SHEET)
async def report_ads(
    query: Annotated[AdReportQuery, Query()], scope: SellerReads, pool: Database, accept: AcceptHeader = ""
) -> Response:
    """Report cost and results of ads."""
    return await _report_entities(query, scope, pool, accept)


@router.get("/sellpages", response_model=SellpageReportAnswer, responses=AS_A_SHEET)
async def report_sellpages(
    query: Annotated[SellpageReportQuery, Query()],
    scope: SellerReads,
    pool: Database,
    accept: AcceptHeader = "",
) -> Response:
    """Report the sources of sell pages' visitors, and what the visitors bought."""
    _check_range(query)
    assert scope.account_id is not None, "a scope of a seller has its account"
    question = PageQuestion(
        seller_id=scope.account_id,
        first=query.date_from,
        last=query.date_to,
        ad_source=query.ad_source,
        search=query.search,
    )
    rows = await store.load_page_rows(pool, question, rows_max=ROWS_MAX + 1)
    _check_count(len(rows))
    return await _encode_report(query, accept, lambda: build_page_report(rows, query.order), level=SELLPAGE)


async def _report_entities(query: ReportQuery, scope: Scope, pool: Pool, accept: str) -> Response:
    _check_range(query)
    assert scope.account_id is not None, "a scope of a seller has its account"
    question = ReportQuestion(
        seller_id=scope.account_id,
        level=query.LEVEL,
        first=query.date_from,
        last=query.date_to,
        campaign_id=query.campaign_id,
        adset_id=query.adset_id,
        ad_account_id=query.ad_account_id,
        sellpage_id=query.sellpage_id,
        status=query.status,
        currency=query.currency,
        search=query.search,
    )
    rows = await store.load_entity_rows(pool, question, rows_max=ROWS_MAX + 1)
    _check_count(len(rows))
    return await _encode_report(
        query, accept, lambda: build_entity_report(rows, query.order), level=query.LEVEL
    )


async def _encode_report(
    query: RangeQuery, accept: str, build: Callable[[], Report], *, level: str
) -> Response:
    """Build and encode the report in a thread: a large one would block the event loop."""
    if (query.format or _choose_format(accept)) is ReportFormat.JSON:
        body = await asyncio.to_thread(
            lambda: encode_json(build(), level=level, first=query.date_from, last=query.date_to)
        )
        return Response(body, media_type=JSON)
    name = f"adloom-{level.lower()}s-{query.date_from}-to-{query.date_to}.csv"
    return Response(
        await asyncio.to_thread(lambda: encode_csv(build(), query.COLUMNS)),
        media_type=CSV,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _choose_format(accept: str) -> ReportFormat:
    """Return CSV only if the client accepts CSV and not JSON."""
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return ReportFormat.CSV if CSV in kinds and JSON not in kinds else ReportFormat.JSON


def _check_range(query: RangeQuery) -> None:
    if query.date_to < query.date_from:
        raise _wrong("dateTo", "must not be before dateFrom")
    if (query.date_to - query.date_from).days >= DAYS_MAX:
        raise _wrong("dateFrom", f"must be less than {DAYS_MAX} days before dateTo")


def _check_count(rows: int) -> None:
    if rows > ROWS_MAX:
        raise _wrong(
            "campaignId", f"or another filter is required: the report has more than {ROWS_MAX:,} rows"
        )


def _wrong(field: str, message: str) -> ValidationFailedError:
    return ValidationFailedError(f"{field} {message}.", errors=[FieldProblem(field, message)])
