"""Refunds: what admins give back to campaigns, and why."""

from adloom.migrations.statements import run

revision = "0023"
down_revision = "0022"

# No row has to be checked: all that there are have a kind of before.
KINDS = """
    ALTER TABLE money_entries DROP CONSTRAINT money_entries_kind_check;
    ALTER TABLE money_entries ADD CONSTRAINT money_entries_kind_check
        CHECK (kind IN ('charge', 'release', 'unbilled', 'over_budget', 'over_cap', 'refund')) NOT VALID;
"""

# The request of an admin. It is done when the money ledger has rows of its id.
REFUNDS = """
    CREATE TABLE refunds (
        id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        public_id      uuid NOT NULL UNIQUE,
        campaign_id    uuid NOT NULL,
        correlation_id varchar(128) NOT NULL,
        amount_micros  bigint NOT NULL CHECK (amount_micros > 0),
        reason         varchar(255) NOT NULL,
        day            date,
        placement_id   uuid,
        created_at     timestamptz NOT NULL,
        UNIQUE (campaign_id, correlation_id)
    );
"""


def upgrade() -> None:
    run(KINDS, REFUNDS)
