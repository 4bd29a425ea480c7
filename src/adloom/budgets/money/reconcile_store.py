"""Reconciliation of a day: four independent records of what was charged.

    bill = sum of charges - sum of refunds = sum over campaigns = sum over advertisers, and over campaigns that have none

The bill, its charges and refunds are rows of the money ledger. Campaigns and advertisers wrote their own totals,
each in the transaction that persisted its state.
"""

from datetime import date
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.money import Micros
from adloom.runtime.postgres import Connection


class SpendDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign or advertiser whose own total disagrees with the money ledger."""

    kind: str
    id: UUID
    charged: Micros
    reported: Micros


class DayReconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """A day's totals; bill a day with differences only after they are explained."""

    day: date
    charges: int
    bill: Micros
    campaigns: int
    campaigns_reported: Micros
    advertisers: int
    advertisers_reported: Micros
    without_advertiser: Micros
    unbilled: Micros
    released: Micros
    refunded: Micros = Micros(0)
    arriving: Micros = Micros(0)  # What has not reached advertisers that agreed a moment ago.
    differences: tuple[SpendDifference, ...]

    @property
    def is_balanced(self) -> bool:
        """Whether all four agree, in total and one by one."""
        return (
            not self.differences
            and self.bill == self.campaigns_reported
            and self.bill == self.advertisers_reported + self.arriving + self.without_advertiser
        )


STATEMENT_SECONDS_MAX: Final = 300.0
DIFFERENCES_MAX: Final = 100

ENTRIES: Final = """
    SELECT count(*) FILTER (WHERE kind = 'charge') AS charges,
           count(DISTINCT campaign_id) FILTER (WHERE kind = 'charge') AS campaigns,
           count(DISTINCT advertiser_id) FILTER (WHERE kind = 'charge') AS advertisers,
           coalesce(sum(net_micros), 0)::bigint AS bill,
           coalesce(sum(net_micros) FILTER (WHERE advertiser_id IS NULL), 0)::bigint AS without_advertiser,
           coalesce(sum(amount_micros) FILTER (WHERE kind = 'refund'), 0)::bigint AS refunded,
           coalesce(sum(amount_micros) FILTER (WHERE kind IN ('unbilled', 'over_budget', 'over_cap')), 0)::bigint AS unbilled,
           coalesce(sum(amount_micros) FILTER (WHERE kind = 'release'), 0)::bigint AS released
      FROM money_entries,
           LATERAL (SELECT CASE kind WHEN 'charge' THEN amount_micros WHEN 'refund' THEN -amount_micros END) AS it (net_micros)
     WHERE day = $1
"""
REPORTED: Final = """
    SELECT coalesce(sum(spent_micros) FILTER (WHERE kind = 'campaign'), 0)::bigint AS campaigns_reported,
           coalesce(sum(spent_micros) FILTER (WHERE kind = 'advertiser'), 0)::bigint AS advertisers_reported
      FROM spend_days WHERE day = $1
"""
_DIFFERENCES: Final = """
    SELECT '{kind}' AS kind, id, coalesce(charged.micros, 0) AS charged, coalesce(said.micros, 0) AS reported
      FROM (SELECT {kind}_id AS id,
                    sum(CASE kind WHEN 'charge' THEN amount_micros ELSE -amount_micros END)::bigint AS micros
               FROM money_entries
             WHERE day = $1 AND kind IN ('charge', 'refund') AND {kind}_id IS NOT NULL GROUP BY 1) AS charged
      FULL JOIN (SELECT id, spent_micros AS micros FROM spend_days WHERE kind = '{kind}' AND day = $1) AS said
             USING (id)
     WHERE coalesce(charged.micros, 0) <> coalesce(said.micros, 0)
"""
DIFFERENCES: Final = (
    _DIFFERENCES.format(kind="campaign")
    + " UNION ALL "
    + _DIFFERENCES.format(kind="advertiser")
    + " ORDER BY 1, 2 LIMIT $2"
)


async def reconcile_day(connection: Connection, day: date) -> DayReconciliation:
    """Read one snapshot; at most `DIFFERENCES_MAX` differences."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        entries = await connection.fetchrow(ENTRIES, day, timeout=STATEMENT_SECONDS_MAX)
        reported = await connection.fetchrow(REPORTED, day, timeout=STATEMENT_SECONDS_MAX)
        differences = await connection.fetch(DIFFERENCES, day, DIFFERENCES_MAX, timeout=STATEMENT_SECONDS_MAX)
    assert entries is not None
    assert reported is not None
    return DayReconciliation(
        day=day,
        differences=tuple(SpendDifference(**row) for row in differences),
        **entries,
        **reported,
    )
