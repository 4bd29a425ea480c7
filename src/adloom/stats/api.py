"""Statistics over HTTP."""

import asyncio
import functools
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
from fastapi import Depends, Query, Request, Response
from pydantic import BeforeValidator, Field

from adloom.core.caller import Caller, Role
from adloom.core.currency import Currency
from adloom.core.errors import ValidationFailedError, make_field_error
from adloom.resource.shapes import AmountShown, Day, TimeZone
from adloom.runtime.http.api.dependencies import (
    CurrentCaller,
    Database,
    Now,
    make_router,
)
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.http.api.sheets import (
    ALSO_CSV,
    CSV,
    JSON,
    AcceptHeader,
    SheetFormat,
    answer_file,
    wants_csv,
)
from adloom.stats.model import UNKNOWN, UTC_ZONE, Grouping, StatsQuestion, write_csv, write_json
from adloom.stats.store import read_key_names, read_statistics

ROWS_MAX: Final = 100_000  # Per answer, which is built in memory: about 30 MB.
# Counts by hour, country and device are many: at most a year of them, and a month to compare.
LIVE_DAYS_MAX: Final = 400
COUNTRY_LENGTH: Final = 2


def _parse_groupings(value: object) -> object:
    # As one text, or as several parameters of the same name.
    given = cast("list[object]", value) if isinstance(value, list) else [value]
    words = [word.strip() for part in given for word in str(part).split(",")]
    if not set(words) <= set(Grouping):
        raise ValueError(f"must be one or several of {', '.join(Grouping)}, separated by commas")
    if len(set(words)) < len(words):
        raise ValueError("must name each only once")
    return words


def _parse_country(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.upper()
    if text == UNKNOWN.upper():
        return UNKNOWN
    if not (len(text) == COUNTRY_LENGTH and text.isascii() and text.isalnum()):
        raise ValueError(f"must be a country of two letters like DE, or {UNKNOWN}")
    return text


class Device(StrEnum):
    """The visitor's device, where it is known."""

    MOBILE = "mobile"
    TABLET = "tablet"
    DESKTOP = "desktop"
    UNKNOWN = UNKNOWN


Groupings = Annotated[tuple[Grouping, ...], BeforeValidator(_parse_groupings)]
Country = Annotated[str, BeforeValidator(_parse_country)]


class StatsQuery(Body):
    """Which counts to return; both days are included, and hours are UTC."""

    first: Annotated[Day, Field(alias="from")]
    last: Annotated[Day, Field(alias="to")]
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None
    country: Annotated[Country | None, Field(description="Two letters, or `unknown`.")] = None
    device: Device | None = None
    group_by: Annotated[Groupings, Field(description="Several are separated by commas.")] = (Grouping.DAY,)
    time_zone: Annotated[
        TimeZone,
        Field(
            description="Whose days are meant, such as `Europe/Berlin`; an hour counts for the day it begins in."
        ),
    ] = UTC_ZONE.key
    format: Annotated[SheetFormat | None, Field(description="Without it, as `Accept` says.")] = None


class StatsTotals(Answer):
    """Counts and the ratios of them. Invalid events are included, and are not billed.

    Events without a token are counted apart. Those who see all accounts have them in `impressions` and `clicks` too,
    unless the installation refuses them.
    """

    impressions: int
    clicks: int
    ctr: Annotated[float, Field(description="Clicks by impressions, a fraction.")]
    spend_paisa: Annotated[
        int | None,
        Field(description="Charges, by their own moment; null by country or device: they name no visitor."),
    ]
    invalid_impressions: int
    invalid_clicks: int
    unbound_impressions: Annotated[int, Field(description="Reported without a token or an API key.")]
    unbound_clicks: int
    over_budget_clicks: Annotated[
        int | None,
        Field(
            description="Clicks that are free because they did not fit the budget, by the moment when that was found; null by country or device."
        ),
    ]
    conversions: Annotated[
        int | None, Field(description="Those of clicks, by their own hour; null for publishers.")
    ]
    conversion_value: Annotated[
        AmountShown | None, Field(description="The sum of their values, as they were reported.")
    ]


class StatsItem(StatsTotals):
    """The counts of one key; it has only the fields of the groupings. Null means no campaign, or unknown."""

    day: Annotated[date | None, Field(alias="date")] = None
    week: Annotated[date | None, Field(description="Its Monday.")] = None
    month: Annotated[date | None, Field(description="Its first day.")] = None
    hour: Annotated[datetime | None, Field(description="When the hour begins.")] = None
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None
    advertiser_id: UUID | None = None
    publisher_id: UUID | None = None
    site_id: UUID | None = None
    delivery: Annotated[
        str | None,
        Field(description="`direct`, `auction` or `contextual`; null where the placement is gone."),
    ] = None
    country: str | None = None
    device: str | None = None
    banner_title: str | None = None
    placement_label: Annotated[str | None, Field(description="Its slug if it was removed.")] = None
    campaign_name: str | None = None
    advertiser_name: str | None = None
    publisher_name: str | None = None
    site_name: str | None = None


class StatsAnswer(Answer):
    """Statistics, by their keys."""

    items: list[StatsItem]
    totals: StatsTotals


async def _counts_unbound(request: Request, caller: CurrentCaller) -> bool:
    return caller.sees_all and request.app.state.counts_unbound


# Accounts see what is believed; an installation may count more for those who see all accounts.
CountsUnbound = Annotated[bool, Depends(_counts_unbound)]

router = make_router("/admin/stats", "statistics", 400, 401, 503)


@router.get("/banners", response_model=StatsAnswer, responses=ALSO_CSV)
async def banner_statistics(  # noqa: PLR0913, PLR0917 - all that the route depends on
    query: Annotated[StatsQuery, Query()],
    request: Request,
    caller: CurrentCaller,
    pool: Database,
    now: Now,
    counts_unbound: CountsUnbound,
    accept: AcceptHeader = "",
) -> Response:
    """Count impressions and clicks, today's included; an account sees its own."""
    question = msgspec.structs.replace(_build_question(query, caller), counts_unbound=counts_unbound)
    rows = await read_statistics(pool, question, today=now.date(), rows_max=ROWS_MAX + 1)
    if len(rows) > ROWS_MAX:
        raise _make_wrong_error(
            "groupBy", f"gives more than {ROWS_MAX:,} rows: ask for less, or for fewer days"
        )
    async with pool.acquire() as connection:
        names = await read_key_names(connection, rows)
    if not wants_csv(query.format, accept):
        body = await asyncio.to_thread(write_json, question.groupings, rows, names)
        return Response(body, media_type=JSON)
    name = f"adloom-banners-{question.first}-to-{question.last}.csv"
    currency: Currency = request.app.state.currency
    write = functools.partial(
        write_csv,
        question.groupings,
        rows,
        names,
        currency=currency.code,
        is_of_publisher=caller.role is Role.PUBLISHER,
    )
    return answer_file(await asyncio.to_thread(write), CSV, name)


def _build_question(query: StatsQuery, caller: Caller) -> StatsQuestion:
    if query.last < query.first:
        raise _make_wrong_error("to", "must not be before `from`")
    question = StatsQuestion(
        **query.model_dump(include={"first", "last", "banner_id", "placement_id", "campaign_id"}),
        groupings=query.group_by,
        zone=ZoneInfo(query.time_zone),
        country="" if query.country == UNKNOWN else query.country,
        device="" if query.device is Device.UNKNOWN else query.device,
        advertiser_id=caller.advertiser_id,
        publisher_id=caller.publisher_id,
    )
    if question.needs_live_counts and (query.last - query.first).days >= LIVE_DAYS_MAX:
        raise _make_wrong_error(
            "from",
            f"must be less than {LIVE_DAYS_MAX} days before `to` where hours, countries, devices or another time zone are asked for",
        )
    return question


def _make_wrong_error(field: str, message: str) -> ValidationFailedError:
    return make_field_error(field, message, f"`{field}` {message}.")
