"""Targeting rules. They hang on a campaign: its owner owns them, and their change is one of it."""

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from pydantic import Field

from adloom.catalog.campaign.resource import campaigns
from adloom.core.errors import ConflictError
from adloom.core.ids import CampaignId, TargetingRuleId
from adloom.resource.access import ADVERTISER, Scope
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.resource import Resource
from adloom.runtime.http.api.shapes import Flag, Text255
from adloom.targeting.rules import Operator, RuleType, Value, parse_rule

RuleValue = bool | list[Value]

RULES_A_CAMPAIGN_MAX: Final = 100


class TargetingRule(msgspec.Struct, frozen=True, kw_only=True):
    """One condition that a visitor must meet; a campaign is shown to those who meet all of its active ones."""

    id: TargetingRuleId
    campaign_id: CampaignId
    rule_type: RuleType
    operator: Operator
    value: RuleValue
    is_active: Flag = True
    created_at: datetime
    updated_at: datetime

    def normalize(self) -> "TargetingRule":
        """Return the rule in its normal form; raises where its type, operator and value do not go together."""
        rule = parse_rule(self.rule_type, self.operator, self.value)
        return msgspec.structs.replace(
            self, rule_type=rule.rule_type, operator=rule.operator, value=rule.json_value
        )


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
        json_schema_extra={
            "anyOf": [
                {
                    "type": "array",
                    "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                    "minItems": 1,
                },
                {"type": "boolean"},
            ]
        },
    ),
]


async def _check_count(
    write: CatalogWrite, _scope: Scope, before: TargetingRule | None, after: TargetingRule
) -> None:
    # The campaign is locked, so the count holds until the write ends.
    if before is None and await write.connection.fetchval(COUNT, after.campaign_id) >= RULES_A_CAMPAIGN_MAX:
        raise ConflictError(
            f"The campaign has {RULES_A_CAMPAIGN_MAX} targeting rules, which is the most it may have.",
            code="TARGETING_RULE_LIMIT_REACHED",
        )


targeting_rules = Resource(
    struct=TargetingRule,
    name="rule",
    noun="targeting_rule",
    path="/admin/targeting-rules",
    tag="targeting rules",
    table_name="campaign_targeting_rules",
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
    check=_check_count,
    finish=lambda rule, _given, _now: rule.normalize(),
    list_name="targetingRules",
    siblings_max=RULES_A_CAMPAIGN_MAX,
)
