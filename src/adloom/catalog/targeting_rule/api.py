"""Targeting rules over HTTP."""

from datetime import datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from fastapi import Query, status
from pydantic import Field

from adloom.catalog.campaign.store import campaigns
from adloom.catalog.targeting_rule import store
from adloom.catalog.targeting_rule.model import RuleValue, TargetingRule
from adloom.core.ids import CampaignId, TargetingRuleId
from adloom.resource.api import AdvertiserReads, AdvertiserWrites, CurrentCatalog, catalog_router
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Flag, Patch, Text255
from adloom.targeting.rules import Operator, RuleType


class TargetingRuleFields(Body):
    """What a rule asks; the three go together, so they are checked together."""

    rule_type: RuleType
    # Any word passes here: which operators there are depends on the type, and has an error of its own.
    operator: Annotated[Text255, Field(json_schema_extra={"enum": list(Operator)})]
    value: Annotated[
        Any,
        Field(
            description="`in`, `not_in`: a list that is not empty; `is`: a boolean; `between`: a pair of hours.",
            json_schema_extra={"type": ["array", "boolean"]},
        ),
    ]
    is_active: Flag = True


class TargetingRuleBody(TargetingRuleFields):
    """A new rule of a campaign."""

    campaign_id: UUID


class TargetingRulePatch(Patch, TargetingRuleFields):
    """Changes of a rule."""


class TargetingRuleAnswer(Answer):
    """A rule; its value is in its normal form."""

    id: UUID
    campaign_id: UUID
    rule_type: RuleType
    operator: Operator
    value: RuleValue
    is_active: bool
    created_at: datetime
    updated_at: datetime
    # A rule is removed for good; the field is there because every resource has it.
    deleted_at: None = None


class TargetingRuleQuery(ListQuery):
    """What a list of rules may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    campaign_id: UUID | None = None


router = catalog_router("/admin/targeting-rules", tag="targeting rules")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_rule(
    body: TargetingRuleBody, scope: AdvertiserWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> TargetingRuleAnswer:
    """Add a rule to a campaign."""
    rule = TargetingRule(
        **body.fields(but="campaign_id"),
        id=TargetingRuleId(ids.new()),
        campaign_id=CampaignId(body.campaign_id),
        created_at=now,
        updated_at=now,
    ).checked()
    async with catalog.write() as write:
        campaign = (await campaigns.find_parent_locked(write, scope, body.campaign_id)).present()
        await store.insert(write, campaign, rule)
    return TargetingRuleAnswer.model_validate(rule)


@router.get("")
async def list_rules(
    query: Annotated[TargetingRuleQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> Page[TargetingRuleAnswer]:
    """List rules, those of one campaign or of all."""
    async with catalog.read() as connection:
        listed = await store.page(connection, scope, query.campaign_id, query.page_request)
    return page_of(TargetingRuleAnswer, listed, query)


@router.get("/{rule_id}")
async def read_rule(rule_id: UUID, scope: AdvertiserReads, catalog: CurrentCatalog) -> TargetingRuleAnswer:
    """Read a rule."""
    async with catalog.read() as connection:
        return TargetingRuleAnswer.model_validate(await store.find(connection, scope, rule_id))


@router.patch("/{rule_id}")
async def change_rule(
    rule_id: UUID, body: TargetingRulePatch, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> TargetingRuleAnswer:
    """Change a rule; what is given is checked together with what stays."""
    async with catalog.write() as write:
        locked = await store.find_locked(write, scope, rule_id)
        after = body.apply_to(locked.rule, updated_at=now).checked()
        rule = await store.update(write, locked, after)
    return TargetingRuleAnswer.model_validate(rule)


@router.delete("/{rule_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_rule(rule_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog) -> None:
    """Remove a rule."""
    async with catalog.write() as write:
        await store.delete(write, await store.find_locked(write, scope, rule_id))
