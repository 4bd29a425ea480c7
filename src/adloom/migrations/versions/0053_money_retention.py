"""Days whose charges were removed from the money ledger, each with its books as they were."""

from adloom.migrations.statements import run

revision = "0053"
down_revision = "0052"

REMOVED_DAYS = """
    CREATE TABLE money_days_removed (
        day            date PRIMARY KEY,
        reconciliation jsonb NOT NULL,
        removed_at     timestamptz NOT NULL
    );
"""


def upgrade() -> None:
    run(REMOVED_DAYS)
