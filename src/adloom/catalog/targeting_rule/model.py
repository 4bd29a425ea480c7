"""A campaign's targeting rule, and what can be wrong with one."""

from datetime import datetime
from typing import Final

import msgspec

from adloom.core.errors import ConflictError, NotFoundError
from adloom.core.ids import CampaignId, TargetingRuleId
from adloom.runtime.http.api.shapes import Flag
from adloom.targeting.rules import Operator, RuleType, Value, parse_rule

RuleValue = bool | list[Value]

RULES_A_CAMPAIGN_MAX: Final = 100


class TargetingRuleNotFoundError(NotFoundError):
    """No such rule, or it belongs to another advertiser."""

    code = "TARGETING_RULE_NOT_FOUND"


class TargetingRuleLimitError(ConflictError):
    """The campaign has as many rules as it may have."""

    code = "TARGETING_RULE_LIMIT_REACHED"


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

    def checked(self) -> "TargetingRule":
        """Return the rule in its normal form; raises where its type, operator and value do not go together."""
        rule = parse_rule(self.rule_type, self.operator, self.value)
        return msgspec.structs.replace(
            self, rule_type=rule.rule_type, operator=rule.operator, value=rule.json_value
        )
