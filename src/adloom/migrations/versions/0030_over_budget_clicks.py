"""Clicks that are free because they did not fit the budget: marked on their rows, and counted for statistics."""

from adloom.migrations.statements import run

revision = "0030"
down_revision = "0029"

# By the hour in which it was decided, like charges. What was decided before is in the money ledger alone.
COUNTS = """
    ALTER TABLE spend_hours
        ADD COLUMN over_budget_clicks bigint NOT NULL DEFAULT 0 CHECK (over_budget_clicks >= 0);
    ALTER TABLE banner_stats
        ADD COLUMN over_budget_clicks integer NOT NULL DEFAULT 0 CHECK (over_budget_clicks >= 0);
"""

# They are valid, so the index of invalid clicks does not have them.
MARKED = "CREATE INDEX ON events.banner_clicks (occurred_at) WHERE marks @> '{over_budget}';"


def upgrade() -> None:
    run(COUNTS, MARKED)
