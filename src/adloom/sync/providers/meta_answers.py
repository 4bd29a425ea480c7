"""Parses the answers of Meta's Insights API: rows, rate-limit headers and errors."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec

from adloom.sync.figures import ZERO, Figures, round_money
from adloom.sync.providers.protocol import (
    CredentialsExpiredError,
    Entity,
    ProviderError,
    ProviderRefusedError,
    ProviderUnavailableError,
    StatRow,
    ThrottledError,
)
from adloom.sync.words import Level

# Meta's name of each level, and the field with the entity's id.
LEVEL_NAMES: Final = {Level.CAMPAIGN: "campaign", Level.ADSET: "adset", Level.AD: "ad"}
ID_FIELDS: Final = {Level.CAMPAIGN: "campaign_id", Level.ADSET: "adset_id", Level.AD: "ad_id"}
FIGURE_FIELDS: Final = (
    *("spend", "impressions", "inline_link_clicks", "actions", "action_values"),
    *("account_currency", "date_start", "date_stop"),
)
# Meta lists the same action under several names, each a sum of narrower ones. The first name that is present counts;
# they are never added.
CONTENT_VIEWS: Final = ("omni_view_content", "view_content", "offsite_conversion.fb_pixel_view_content")
ADD_TO_CART: Final = ("omni_add_to_cart", "add_to_cart", "offsite_conversion.fb_pixel_add_to_cart")
CHECKOUTS: Final = (
    *("omni_initiated_checkout", "initiate_checkout"),
    "offsite_conversion.fb_pixel_initiate_checkout",
)
PURCHASES: Final = ("omni_purchase", "purchase", "offsite_conversion.fb_pixel_purchase")
FIGURE_MAX: Final = 10**12  # Of an entity and day: sums of many of these fit the database, too.


class MetaAction(msgspec.Struct, frozen=True):
    """The count of an action, or its value."""

    action_type: str
    value: str = "0"


class Insight(msgspec.Struct, frozen=True, kw_only=True):
    """A row: one entity and day. Figures are strings; zeros may be left out."""

    date_start: date
    date_stop: date
    campaign_id: str | None = None
    adset_id: str | None = None
    ad_id: str | None = None
    account_currency: str | None = None
    spend: str = "0"
    impressions: str = "0"
    inline_link_clicks: str = "0"
    actions: Sequence[MetaAction] = ()
    action_values: Sequence[MetaAction] = ()


class MetaCursors(msgspec.Struct, frozen=True):
    """The cursor of the next page."""

    after: str | None = None


class MetaPaging(msgspec.Struct, frozen=True):
    """Without `next` this is the last page. The URL in `next` contains the token, so it is never used."""

    cursors: MetaCursors | None = None
    next: str | None = None


class InsightPage(msgspec.Struct, frozen=True):
    """A page of rows."""

    data: Sequence[Insight]
    paging: MetaPaging | None = None

    @property
    def after(self) -> str | None:
        """The cursor of the next page; None on the last one."""
        if self.paging is None or self.paging.next is None:
            return None
        if self.paging.cursors is None or self.paging.cursors.after is None:
            raise ProviderUnavailableError("Meta names a next page without its cursor.")
        return self.paging.cursors.after


def list_fields(level: Level) -> str:
    return ",".join((ID_FIELDS[level], *FIGURE_FIELDS))


def parse_rows(
    page: Sequence[Insight], level: Level, entities: Mapping[str, Entity], *, first: date, last: date
) -> list[StatRow]:
    """Parse the rows of known entities; Meta also sends entities that were never entered here."""
    rows: list[StatRow] = []
    for insight in page:
        if not first <= insight.date_start == insight.date_stop <= last:
            raise ProviderUnavailableError(
                f"Meta sent figures of {insight.date_start} to {insight.date_stop}, which is none of the days asked for."
            )
        external_id = find_external_id(insight, level)
        entity = entities.get(external_id)
        if entity is None:
            continue
        rows.append(
            StatRow(
                entity_id=entity.id,
                external_entity_id=external_id,
                date_start=insight.date_start,
                date_stop=insight.date_stop,
                figures=parse_figures(insight),
            )
        )
    return rows


def find_external_id(insight: Insight, level: Level) -> str:
    external_id: str | None = getattr(insight, ID_FIELDS[level])
    if external_id is None:
        raise ProviderUnavailableError(f"A row of Meta has no {ID_FIELDS[level]}.")
    return external_id


def parse_figures(insight: Insight) -> Figures:
    return Figures(
        spend=round_money(parse_number(insight.spend)),
        impressions=int(parse_number(insight.impressions)),
        link_clicks=int(parse_number(insight.inline_link_clicks)),
        content_views=int(_read_widest(insight.actions, CONTENT_VIEWS)),
        add_to_cart=int(_read_widest(insight.actions, ADD_TO_CART)),
        checkout_initiated=int(_read_widest(insight.actions, CHECKOUTS)),
        purchases=int(_read_widest(insight.actions, PURCHASES)),
        purchase_value=round_money(_read_widest(insight.action_values, PURCHASES)),
    )


def parse_number(text: str) -> Decimal:
    """Parse a figure; one that is invalid, negative or beyond all bounds is an error of Meta, not 0."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(-1)
    if not value.is_finite() or not 0 <= value <= FIGURE_MAX:
        raise ProviderUnavailableError(f"Meta sent an invalid figure: {text[:40]!r}.")
    return value


def _read_widest(actions: Sequence[MetaAction], names: Sequence[str]) -> Decimal:
    values = {action.action_type: action.value for action in actions}
    return next((parse_number(values[name]) for name in names if name in values), ZERO)


T = TypeVar("T")

BUSINESS_HEADER: Final = "x-business-use-case-usage"
ACCOUNT_HEADER: Final = "x-ad-account-usage"
INSIGHTS_HEADER: Final = "x-fb-ads-insights-throttle"
APP_HEADER: Final = "x-app-usage"
# From SLOW_PERCENT on each request waits, longer the less is left; from FULL_PERCENT on we stop.
SLOW_PERCENT: Final = 75.0
FULL_PERCENT: Final = 95.0
REST_MAX: Final = timedelta(seconds=20)
# If Meta does not say how long: its windows are five minutes to an hour.
RETRY_AFTER: Final = timedelta(minutes=5)
RETRY_AFTER_MAX: Final = timedelta(hours=24)
PERCENTAGES: Final = (*("call_count", "total_cputime", "total_time"), *("acc_id_util_pct", "app_id_util_pct"))


class MetaUsage(msgspec.Struct, frozen=True):
    """The used share of the rate limit in percent, and when it recovers, if Meta says so."""

    percent: float = 0.0
    regain: timedelta = timedelta()

    @property
    def is_full(self) -> bool:
        """Whether Meta would reject another request."""
        return self.percent >= FULL_PERCENT or self.regain > timedelta()

    @property
    def rest(self) -> timedelta:
        """How long to wait before the next request."""
        if self.percent < SLOW_PERCENT:
            return timedelta()
        return REST_MAX * min(1.0, (self.percent - SLOW_PERCENT) / (FULL_PERCENT - SLOW_PERCENT))

    @property
    def retry_after(self) -> timedelta:
        return self.regain or RETRY_AFTER


def parse_usage(headers: Mapping[str, str]) -> MetaUsage:
    """Parse the usage headers of an answer; headers that cannot be parsed are ignored."""
    usages = [
        _read(headers.get(name), dict[str, Any]) for name in (ACCOUNT_HEADER, INSIGHTS_HEADER, APP_HEADER)
    ]
    for uses in _read(headers.get(BUSINESS_HEADER), dict[str, list[dict[str, Any]]]).values():
        usages += uses
    return MetaUsage(
        max((_read_figure(one, name) for one in usages for name in PERCENTAGES), default=0.0),
        max(
            map(_read_regain, usages),
            default=timedelta(),
        ),
    )


def _read(text: str | None, shape: type[dict[str, T]]) -> dict[str, T]:
    try:
        return msgspec.json.decode(text or "{}", type=shape)
    except msgspec.MsgspecError:
        return {}


def _read_regain(usage: dict[str, Any]) -> timedelta:
    minutes = _read_figure(usage, "estimated_time_to_regain_access")
    return timedelta(minutes=min(minutes, RETRY_AFTER_MAX / timedelta(minutes=1)))


def _read_figure(usage: dict[str, Any], name: str) -> float:
    value = usage.get(name, 0)
    return float(value) if isinstance(value, int | float) and value >= 0 else 0.0


# 190: the token has expired or was revoked; 102: its session has ended.
EXPIRED_CODES: Final = frozenset({102, 190})
# 10 and 200 to 299: the token lacks a permission, so a new one is needed.
PERMISSION_CODES: Final = frozenset({10, *range(200, 300)})
# 4: the app, 17 and 32: the user, 613: the account; from 80000: the business use cases.
THROTTLED_CODES: Final = frozenset({4, 17, 32, 613, *range(80000, 80015)})
# 1: unknown error, 2: service error; both are temporary.
TRANSIENT_CODES: Final = frozenset({1, 2})
TOO_MUCH_DATA: Final = "reduce the amount of data"


class MetaFault(msgspec.Struct, frozen=True):
    """The error in an answer."""

    code: int = 0
    error_subcode: int = 0
    message: str = ""
    is_transient: bool = False


class MetaErrorBody(msgspec.Struct, frozen=True):
    """The body of an error answer."""

    error: MetaFault


class TooMuchDataError(ProviderUnavailableError):
    """A page is too large for Meta; a smaller one may work."""


def parse_error(status: int, body: bytes, usage: MetaUsage) -> ProviderError:
    """Classify an error answer. Meta's own message is left out: it may repeat the token."""
    try:
        fault = msgspec.json.decode(body, type=MetaErrorBody).error
    except msgspec.MsgspecError:
        fault = MetaFault()
    named = f"(code {fault.code}, subcode {fault.error_subcode}, HTTP {status})"
    if fault.code in EXPIRED_CODES or (not fault.code and status == HTTPStatus.UNAUTHORIZED):
        return CredentialsExpiredError(f"Meta rejects the access token {named}. Connect the account again.")
    if fault.code in PERMISSION_CODES:
        return CredentialsExpiredError(
            f"The access token may not read the statistics {named}. Connect the account with ads_read."
        )
    if fault.code in THROTTLED_CODES or status == HTTPStatus.TOO_MANY_REQUESTS:
        return ThrottledError(f"Meta's rate limit is reached {named}.", retry_after=usage.retry_after)
    if TOO_MUCH_DATA in fault.message.lower():
        return TooMuchDataError(f"Meta finds a page too large {named}.")
    if fault.code in TRANSIENT_CODES or fault.is_transient or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ProviderUnavailableError(f"Meta is temporarily unavailable {named}.")
    return ProviderRefusedError(
        f"Meta rejects the request {named}. Check the account's externalId and its external ids."
    )
