"""Targeting rules, declared. They hang on a campaign: its owner owns them, and their change is one of it."""

from typing import Annotated, Any

from pydantic import Field

from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.targeting_rule.model import (
    RULES_A_CAMPAIGN_MAX,
    TargetingRule,
    TargetingRuleLimitError,
    TargetingRuleNotFoundError,
)
from adloom.resource.access import Scope
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.resource import Resource
from adloom.resource.table import ADVERTISER
from adloom.runtime.http.api.shapes import Text255
from adloom.targeting.rules import Operator

COUNT = """
    SELECT count(*) FROM campaign_targeting_rules AS it JOIN campaigns AS campaign ON campaign.id = it.campaign_id
     WHERE campaign.public_id = $1
"""
# Any word passes here: which operators there are depends on the type, and has an error of its own.
ANY_OPERATOR = Annotated[Text255, Field(json_schema_extra={"enum": list(Operator)})]
ANY_VALUE = Annotated[
    Any,
    Field(
        description="`in`, `not_in`: a list that is not empty; `is`: a boolean; `between`: a pair of hours.",
        json_schema_extra={"type": ["array", "boolean"]},
    ),
]


async def _check_count(
    write: CatalogWrite, _scope: Scope, before: TargetingRule | None, after: TargetingRule
) -> None:
    # The campaign is locked, so the count holds until the write ends.
    if before is None and await write.connection.fetchval(COUNT, after.campaign_id) >= RULES_A_CAMPAIGN_MAX:
        raise TargetingRuleLimitError(
            f"The campaign has {RULES_A_CAMPAIGN_MAX} targeting rules, which is the most it may have."
        )


targeting_rules = Resource(
    struct=TargetingRule,
    name="rule",
    noun="targeting_rule",
    path="/admin/targeting-rules",
    tag="targeting rules",
    table_name="campaign_targeting_rules",
    not_found=TargetingRuleNotFoundError,
    owner=ADVERTISER,
    references={"campaign_id": campaigns},
    parents=("campaign_id",),
    touches=(IndexedNoun.CAMPAIGN, "campaign_id"),
    docs={
        "body": "A new rule of a campaign.",
        "answer": "A rule; its value is in its normal form.",
        "create": "Add a rule to a campaign.",
        "list": "List rules, those of one campaign or of all.",
        "change": "Change a rule; what is given is checked together with what stays.",
        "delete": "Remove a rule.",
    },
    form={"operator": (ANY_OPERATOR, ...), "value": (ANY_VALUE, ...)},
    filters=("campaign_id",),
    sort=("rule_type", "operator", "is_active"),
    columns=("rule_type", "operator", "value", "is_active"),
    check=_check_count,
    finish=lambda rule, _given, _now: rule.checked(),
    list_name="targetingRules",
    siblings_max=RULES_A_CAMPAIGN_MAX,
)
