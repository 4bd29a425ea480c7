"""Reports over HTTP."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Annotated, ClassVar, Final
from uuid import UUID

from fastapi import Query, Response
from pydantic import Field, create_model, field_validator

from adloom.core.errors import make_field_error
from adloom.resource.access import Scope
from adloom.runtime.http.api.dependencies import Database, make_router
from adloom.runtime.http.api.pages import list_orders
from adloom.runtime.http.api.shapes import Answer, Body, Text255
from adloom.runtime.http.api.sheets import (
    ALSO_CSV,
    CSV,
    JSON,
    AcceptHeader,
    SheetFormat,
    answer_file,
    wants_csv,
)
from adloom.runtime.postgres import Pool
from adloom.sync.api import PREFIX, SellerId, SellerReads, SyncedDay
from adloom.sync.hierarchy.model import Currency
from adloom.sync.reports import store
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
    encode_csv,
    encode_json,
)
from adloom.sync.words import AdSource, BudgetType, EntityStatus, Level

ROWS_MAX: Final = 50_000  # An answer is built in memory: this is about 40 MB.
DAYS_MAX: Final = 1_200  # Three years, and a quarter to compare with.
SELLPAGE: Final = "SELLPAGE"
PAGE_COLUMNS: Final = (*store.SELLPAGE_COLUMNS, *PAGE_FIGURES, *PAGE_RATIOS)
COLUMNS: Final = {level: (*store.list_columns(level), *FIGURES, *RATIOS) for level in Level}


class RangeQuery(Body):
    """The range of days of a report (inclusive), in the account's time zone."""

    COLUMNS: ClassVar[Sequence[str]] = ()

    date_from: SyncedDay
    date_to: SyncedDay
    sort: Annotated[Text255, Field(description="Any column; `-` before it for descending.")] = "-spend"
    search: Text255 | None = None
    format: Annotated[SheetFormat | None, Field(description="Without it, as `Accept` says.")] = None
    seller_id: SellerId = None

    @classmethod
    def describe_sort(cls) -> None:
        """Name the columns in the API's description; to be called when they are known."""
        cls.model_fields["sort"].json_schema_extra = {"enum": list_orders(cls.COLUMNS)}

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


class SellpageReportQuery(RangeQuery):
    """Filters of a report on sell pages."""

    COLUMNS: ClassVar = PAGE_COLUMNS

    sort: Annotated[Text255, Field(description="Any column; `-` before it for descending.")] = "-adSpend"
    ad_source: AdSource | None = None


SellpageReportQuery.describe_sort()


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


router = make_router(f"{PREFIX}/reports", "ads manager", 400, 401, 403, 404, 503)


def _add_route(level: Level, path: str, words: str) -> None:
    query_type = create_model(
        f"{level.title()}ReportQuery", __base__=ReportQuery, __doc__=f"Filters of a report on {words}."
    )
    query_type.LEVEL, query_type.COLUMNS = level, COLUMNS[level]
    query_type.describe_sort()

    async def report(
        query: ReportQuery, scope: SellerReads, pool: Database, accept: AcceptHeader = ""
    ) -> Response:
        return await _report_entities(query, scope, pool, accept)

    report.__annotations__["query"] = Annotated[query_type, Query()]
    router.add_api_route(
        f"/{path}",
        report,
        name=f"report_{path}",
        description=f"Report cost and results of {words}.",
        response_model=ReportAnswer,
        responses=ALSO_CSV,
    )


_add_route(Level.CAMPAIGN, "campaigns", "campaigns")
_add_route(Level.ADSET, "adsets", "ad sets")
_add_route(Level.AD, "ads", "ads")


@router.get("/sellpages", response_model=SellpageReportAnswer, responses=ALSO_CSV)
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
        **query.model_dump(exclude={"seller_id", "date_from", "date_to", "sort", "format"}),
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
    if not wants_csv(query.format, accept):
        body = await asyncio.to_thread(
            lambda: encode_json(build(), level=level, first=query.date_from, last=query.date_to)
        )
        return Response(body, media_type=JSON)
    name = f"adloom-{level.lower()}s-{query.date_from}-to-{query.date_to}.csv"
    return answer_file(await asyncio.to_thread(lambda: encode_csv(build(), query.COLUMNS)), CSV, name)


def _check_range(query: RangeQuery) -> None:
    if query.date_to < query.date_from:
        raise make_field_error("dateTo", "must not be before dateFrom")
    if (query.date_to - query.date_from).days >= DAYS_MAX:
        raise make_field_error("dateFrom", f"must be less than {DAYS_MAX} days before dateTo")


def _check_count(rows: int) -> None:
    if rows > ROWS_MAX:
        raise make_field_error(
            "campaignId", f"or another filter is required: the report has more than {ROWS_MAX:,} rows"
        )
