"""SQL of targeting rules.

They hang on a campaign, so whose they are is told by it, and a change counts as one of the campaign.
"""

from uuid import UUID

import msgspec

from adloom.catalog.campaign.model import Campaign
from adloom.catalog.campaign.store import campaigns
from adloom.catalog.targeting_rule.model import (
    RULES_A_CAMPAIGN_MAX,
    TargetingRule,
    TargetingRuleLimitError,
    TargetingRuleNotFoundError,
)
from adloom.resource.access import Scope
from adloom.resource.audit.difference import find_changed_fields
from adloom.resource.audit.entry import AuditSubject
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.etag import moved_forward
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection, Record

SORTABLE = frozenset({"created_at", "updated_at", "rule_type", "operator", "is_active"})
RULES = RowSource(
    columns="""
        it.public_id AS id, campaign.public_id AS campaign_id, it.rule_type, it.operator, it.value,
        it.is_active, it.created_at, it.updated_at, owner.public_id AS owner_id
    """,
    tables="""
        campaign_targeting_rules AS it
        JOIN campaigns AS campaign ON campaign.id = it.campaign_id
        LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
    """,
    tiebreak="it.id",
)
COUNT = """
    SELECT count(*) FROM campaign_targeting_rules AS it JOIN campaigns AS campaign ON campaign.id = it.campaign_id
     WHERE campaign.public_id = $1
"""
INSERT = """
    INSERT INTO campaign_targeting_rules
           (public_id, campaign_id, rule_type, operator, value, is_active, created_at, updated_at)
    SELECT $1, id, $3, $4, $5, $6, $7, $8 FROM campaigns WHERE public_id = $2
    RETURNING campaign_id
"""
UPDATE = """
    UPDATE campaign_targeting_rules
       SET rule_type = $2, operator = $3, value = $4, is_active = $5, updated_at = $6
     WHERE public_id = $1
    RETURNING campaign_id
"""
DELETE = "DELETE FROM campaign_targeting_rules WHERE public_id = $1 RETURNING campaign_id"


class OwnedRule(msgspec.Struct, frozen=True):
    """A rule, and the account that its campaign belongs to."""

    rule: TargetingRule
    owner_id: UUID | None


async def find(connection: Connection, scope: Scope, rule_id: UUID) -> TargetingRule:
    """Read a rule; one of another account's campaign is not there."""
    return (await _owned(connection, scope, rule_id)).rule


async def find_locked(write: CatalogWrite, scope: Scope, rule_id: UUID) -> OwnedRule:
    """Read a rule to change it, in the state that the client knows, with its campaign locked before it."""
    found = await _owned(write.connection, scope, rule_id)
    campaign = await campaigns.find_parent_locked(write, scope, found.rule.campaign_id)
    campaign.present()
    locked = await _owned(write.connection, scope, rule_id, "FOR UPDATE OF it")
    write.precondition.check(locked.rule)
    return locked


async def page(
    connection: Connection, scope: Scope, campaign_id: UUID | None, page: PageRequest
) -> Listed[TargetingRule]:
    """Read a page of the rules of a scope, of one campaign where it is named."""
    filters = Filters()
    filters.add_given("campaign.public_id = {}", campaign_id)
    filters.add_given("owner.public_id = {}", scope.account_id)
    rows = await fetch_page(connection, RULES, filters, page)
    return Listed(items=[_rule(row).rule for row in rows.items], total_count=rows.total_count)


async def insert(write: CatalogWrite, campaign: Campaign, rule: TargetingRule) -> None:
    """Add a rule to a campaign that is locked, so that the count holds."""
    if await write.connection.fetchval(COUNT, campaign.id) >= RULES_A_CAMPAIGN_MAX:
        raise TargetingRuleLimitError(
            f"The campaign has {RULES_A_CAMPAIGN_MAX} targeting rules, which is the most it may have."
        )
    key: int = await write.connection.fetchval(
        INSERT,
        rule.id,
        campaign.id,
        rule.rule_type,
        rule.operator,
        rule.value,
        rule.is_active,
        rule.created_at,
        rule.updated_at,
    )
    write.touch(IndexedNoun.CAMPAIGN, key)
    write.record_creation(_about(rule, campaign.advertiser_id), rule)


async def update(write: CatalogWrite, locked: OwnedRule, after: TargetingRule) -> TargetingRule:
    """Write a changed rule, and give it as it is now; where nothing differs nothing is written."""
    before = locked.rule
    if not find_changed_fields(before, after):
        return before
    after = moved_forward(before, after)
    key: int = await write.connection.fetchval(
        UPDATE, after.id, after.rule_type, after.operator, after.value, after.is_active, after.updated_at
    )
    write.touch(IndexedNoun.CAMPAIGN, key)
    write.record_update(_about(after, locked.owner_id), before, after)
    return after


async def delete(write: CatalogWrite, locked: OwnedRule) -> None:
    """Remove a rule that was read with a lock before."""
    write.touch(IndexedNoun.CAMPAIGN, await write.connection.fetchval(DELETE, locked.rule.id))
    write.record_deletion(_about(locked.rule, locked.owner_id), locked.rule)


async def _owned(connection: Connection, scope: Scope, rule_id: UUID, lock: str = "") -> OwnedRule:
    filters = Filters()
    filters.add("it.public_id = {}", rule_id)
    filters.add_given("owner.public_id = {}", scope.account_id)
    statement = f"SELECT {RULES.columns} FROM {RULES.tables} WHERE {filters.sql} {lock}"  # noqa: S608 - our own names
    row = await connection.fetchrow(statement, *filters.values)
    if row is None:
        raise TargetingRuleNotFoundError("There is no targeting rule with this id.")
    return _rule(row)


def _rule(row: Record) -> OwnedRule:
    fields = dict(row)
    owner_id: UUID | None = fields.pop("owner_id")
    return OwnedRule(msgspec.convert(fields, TargetingRule), owner_id)


def _about(rule: TargetingRule, owner_id: UUID | None) -> AuditSubject:
    return AuditSubject("targeting_rule", str(rule.id), owner_id)
