"""`POST /admin/campaigns/{id}/what-if`: what a change of a campaign would bring."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from fastapi import Request
from msgspec import UNSET
from pydantic import AfterValidator, Field

from adloom.bidding.window import BidStrategy
from adloom.catalog.campaign.model import CATEGORIES_MAX, Campaign
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.targeting_rule import ANY_OPERATOR, ANY_VALUE, RULES_A_CAMPAIGN_MAX
from adloom.catalog.taxonomy.fields import ContentCategory
from adloom.core.errors import FieldProblem, ValidationFailedError, make_field_error
from adloom.core.money import Micros, micros_from_paisa
from adloom.forecast.changes import CampaignChange, apply_changes
from adloom.forecast.live.page_traffic import add_descendants, expand_wanted
from adloom.forecast.live.rows import LiveRows, build_live_market, keep_counted_rules
from adloom.forecast.live.store import read_surroundings
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.result import DayEstimate
from adloom.forecast.what_if.question import DAYS, WhatIfQuestion, WhatIfResult, has_traffic
from adloom.forecast.what_if.runner import WhatIfRunner
from adloom.forecast.what_if.wording import (
    DUST,
    NOT_ENOUGH,
    blur_rivals,
    describe,
    describe_pages,
    describe_unseen,
    is_unseen,
)
from adloom.market.report.reach import CampaignReach
from adloom.market.report.reach_store import read_reach
from adloom.resource.api import AdvertiserWrites
from adloom.resource.shapes import Paisa, PositivePrice, Price
from adloom.runtime.http.api.dependencies import Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer, Body, Moment, Text255
from adloom.runtime.postgres import Connection
from adloom.schedule.pacing import PacingStrategy
from adloom.targeting.rules import parse_rule

PLACEMENTS_MAX: Final = 50
SIMULATED_SECONDS: Final = 5.0
PLACES: Final = 4

Rounded = Annotated[float, AfterValidator(lambda value: round(value, PLACES))]


class RuleBody(Body):
    """A targeting rule, as `POST /admin/targeting-rules` takes it."""

    rule_type: Text255
    operator: ANY_OPERATOR
    value: ANY_VALUE


class WhatIfBody(Body):
    """What would be different; what is not named stays as it is, and null takes a limit or a date away."""

    bid_amount: Price = Micros(0)
    budget_daily_paisa: Paisa | None = None
    budget_total_paisa: Paisa | None = None
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    pacing_strategy: PacingStrategy = PacingStrategy.SMOOTH
    bid_strategy: BidStrategy = BidStrategy.FIXED
    target_cpa: Annotated[PositivePrice | None, Field(description="What a conversion should cost.")] = None
    categories: Annotated[
        tuple[ContentCategory, ...],
        Field(max_length=CATEGORIES_MAX, description="Of pages, for contextual slots."),
    ] = ()
    excluded_categories: Annotated[
        tuple[ContentCategory, ...],
        Field(max_length=CATEGORIES_MAX, description="On pages that are also about these it is not shown."),
    ] = ()
    targeting: Annotated[
        tuple[RuleBody, ...],
        Field(max_length=RULES_A_CAMPAIGN_MAX, description="In place of the campaign's rules."),
    ] = ()


class EstimateAnswer(Answer):
    """A mean, and the ends of its 90 % interval."""

    mean: Rounded
    low: Rounded | None
    high: Rounded | None


class ForecastDay(Answer):
    """An average day. Money is in units; the price is of a click, or of a thousand impressions."""

    impressions: EstimateAnswer
    clicks: EstimateAnswer
    conversions: EstimateAnswer
    spend: EstimateAnswer
    price: EstimateAnswer | None


class ForecastHour(Answer):
    """Impressions in an hour of the day, UTC."""

    hour: int
    before: EstimateAnswer
    after: EstimateAnswer


class PagesReached(Answer):
    """Pages that fit the campaign's categories, and on how many of them it may be shown."""

    pages: int
    reached: int


class ContextualForecast(Answer):
    """The pages of contextual slots, without and with the change."""

    before: PagesReached
    after: PagesReached


class WhatIfAnswer(Answer):
    """What a change would bring on an average day of the next seven."""

    campaign_id: UUID
    is_enough: Annotated[bool, Field(description="Whether there was enough traffic in the last seven days.")]
    sentence: str
    before: ForecastDay | None
    after: ForecastDay | None
    difference: Annotated[
        ForecastDay | None, Field(description="Within pairs of runs with the same visitors.")
    ]
    hours: Sequence[ForecastHour]
    contextual: Annotated[
        ContextualForecast | None, Field(description="Null if the campaign wants no contextual slots.")
    ]
    days: int
    runs: int
    sampled_share: Annotated[float, Field(description="Of all requests, the share that was simulated.")]
    notes: Annotated[Sequence[str], Field(description="What is not simulated here.")]


router = make_router("/admin/campaigns", "forecasts", 400, 401, 403, 404, 413, 503)


@router.post("/{campaign_id}/what-if")
async def ask_what_if(  # noqa: PLR0913, PLR0917 - as the framework passes them
    campaign_id: UUID,
    body: WhatIfBody,
    request: Request,
    scope: AdvertiserWrites,
    pool: Database,
    now: Now,
) -> WhatIfAnswer:
    """Simulate the campaign without and with a change, from the traffic of the last seven days; nothing changes.

    It takes up to ten seconds. Accounts get it from rivals' bids in coarse steps.
    """
    runner: WhatIfRunner = request.app.state.what_if
    async with pool.acquire() as connection:
        campaign = await campaigns.table.find(connection, scope, campaign_id)
        rules = _parse_rules(body)
        _check_dates(campaign, body)
        runner.check_free(scope.account_id)
        contextual = await _count_pages(connection, campaign, body, now)
        rows = await read_surroundings(
            connection,
            campaign.id,
            wanted=expand_wanted(
                {*campaign.categories, *body.categories},
                takes_filler=campaign.bids_on_unmatched,
                excluded=_list_excluded(campaign, body),
            ),
            now=now,
            placements_max=PLACEMENTS_MAX,
        )
    market = build_live_market(rows)
    own = next((one for one in market.campaigns if one.id == campaign.id), None)
    if own is None or not has_traffic(market):
        return _refuse(campaign, market.notes, contextual)
    if scope.account_id is not None:
        market = blur_rivals(market, campaign.advertiser_id)
    change = _build_change(body, rows, own.key, rules)
    result = await runner.run(
        WhatIfQuestion(
            market=market,
            changed=apply_changes(market, [change]),
            campaign_key=own.key,
            seconds=SIMULATED_SECONDS,
        ),
        scope.account_id,
    )
    return _show(campaign, market, result, contextual, is_per_click=own.is_per_click)


def _build_change(body: WhatIfBody, rows: LiveRows, key: int, rules: Any) -> CampaignChange:  # noqa: ANN401 - rules, or unset
    """Take what the body names; of a budget, what is left of it for the copied placements."""
    named: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    share = rows.shares.get(key, 1.0)
    fields: dict[str, Any] = {
        "bid": named.get("bid_amount", UNSET),
        "daily_budget": _find_limit(named, "budget_daily_paisa", share),
        "total_budget": _find_limit(named, "budget_total_paisa", share, spent=rows.spent.get(key, 0)),
        "starts_at": named.get("starts_at", UNSET),
        "ends_at": named.get("ends_at", UNSET),
        "pacing": named.get("pacing_strategy", UNSET),
        "bid_strategy": named.get("bid_strategy", UNSET),
        "target": named.get("target_cpa", UNSET),
        "rules": rules,
        "categories": named.get("categories", UNSET),
        "excluded_categories": named.get("excluded_categories", UNSET),
    }
    return CampaignChange(campaign_key=key, **fields)


def _find_limit(named: dict[str, Any], field: str, share: float, *, spent: int = 0) -> Any:  # noqa: ANN401 - micros, none or unset
    paisa = named.get(field, UNSET)
    if paisa is UNSET or paisa is None:
        return paisa
    return Micros(int(max(0, micros_from_paisa(paisa) - spent) * share))


def _parse_rules(body: WhatIfBody) -> Any:  # noqa: ANN401 - rules, or unset
    """Parse the rules in place of the campaign's; the error names the one that is wrong."""
    if "bid_amount" in body.model_fields_set and not body.bid_amount:
        raise make_field_error("bidAmount", "must be more than 0")
    if "targeting" not in body.model_fields_set:
        return UNSET
    rules = [parse_rule(one.rule_type, one.operator, one.value) for one in body.targeting]
    return keep_counted_rules(rules)


def _check_dates(campaign: Campaign, body: WhatIfBody) -> None:
    named = body.model_fields_set
    starts_at: datetime | None = body.starts_at if "starts_at" in named else campaign.starts_at
    ends_at: datetime | None = body.ends_at if "ends_at" in named else campaign.ends_at
    if starts_at is not None and ends_at is not None and starts_at >= ends_at:
        problem = FieldProblem("endsAt", "must be after startsAt")
        raise ValidationFailedError("endsAt must be after startsAt.", errors=[problem])


async def _count_pages(
    connection: Connection, campaign: Campaign, body: WhatIfBody, now: datetime
) -> ContextualForecast | None:
    """Count the pages that the campaign reaches, without and with the change."""
    changes: dict[str, Any] = {}
    if "categories" in body.model_fields_set:
        changes["categories"] = tuple(dict.fromkeys(body.categories))
    if "excluded_categories" in body.model_fields_set:
        changes["excluded_categories"] = body.excluded_categories
    if "bid_amount" in body.model_fields_set:
        changes["bid_amount_micros"] = body.bid_amount
    changed = msgspec.structs.replace(campaign, **changes)
    changed.check_exclusions()
    before = await read_reach(connection, campaign, now=now)
    after = await read_reach(connection, changed, now=now)
    if before is None and after is None:
        return None
    return ContextualForecast(before=_show_reach(before), after=_show_reach(after))


def _list_excluded(campaign: Campaign, body: WhatIfBody) -> frozenset[str]:
    """Return the categories that are excluded both without and with the change."""
    before = add_descendants(campaign.excluded_categories)
    is_changed = "excluded_categories" in body.model_fields_set
    return before & add_descendants(body.excluded_categories) if is_changed else before


def _show_reach(reach: CampaignReach | None) -> PagesReached:
    return PagesReached(pages=0, reached=0) if reach is None else PagesReached.model_validate(reach)


def _add_pages(sentence: str, contextual: ContextualForecast | None) -> str:
    """Say what changes in contextual slots too."""
    if contextual is None:
        return sentence
    before, after = contextual.before, contextual.after
    return f"{sentence} {describe_pages(before.reached, after.reached, after.pages)}"


def _refuse(campaign: Campaign, notes: Sequence[str], contextual: ContextualForecast | None) -> WhatIfAnswer:
    return WhatIfAnswer(
        campaign_id=campaign.id,
        is_enough=False,
        sentence=_add_pages(NOT_ENOUGH, contextual),
        contextual=contextual,
        before=None,
        after=None,
        difference=None,
        hours=[],
        days=DAYS,
        runs=0,
        sampled_share=0.0,
        notes=list(notes),
    )


def _show(
    campaign: Campaign,
    market: SimulatedMarket,
    result: WhatIfResult,
    contextual: ContextualForecast | None,
    *,
    is_per_click: bool,
) -> WhatIfAnswer:
    compared = result.compared
    sentence = (
        DUST
        if result.is_dust
        else describe_unseen(result.share)
        if is_unseen(compared)
        else describe(compared, is_per_click=is_per_click)
    )
    return WhatIfAnswer(
        campaign_id=campaign.id,
        # Of a small part of the traffic, nothing seen says nothing.
        is_enough=not result.is_dust and (result.share == 1 or not is_unseen(compared)),
        sentence=_add_pages(sentence, contextual),
        contextual=contextual,
        before=_show_day(compared.before),
        after=_show_day(compared.after),
        difference=_show_day(compared.difference),
        hours=[
            ForecastHour.model_validate({"hour": hour, "before": before, "after": after})
            for hour, (before, after) in enumerate(zip(result.hours_before, result.hours_after, strict=True))
        ],
        days=result.days,
        runs=result.runs,
        sampled_share=result.share,
        notes=[*market.notes, *result.notes],
    )


def _show_day(day: DayEstimate | None) -> ForecastDay | None:
    return None if day is None else ForecastDay.model_validate(day)
