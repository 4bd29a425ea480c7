"""A click that does not fit what is left of a budget or cap is in the money ledger, and free."""

from adloom.migrations.statements import run

revision = "0015"
down_revision = "0014"

# No row has to be checked: all that there are have a kind of before.
KINDS = """
    ALTER TABLE money_entries DROP CONSTRAINT money_entries_kind_check;
    ALTER TABLE money_entries ADD CONSTRAINT money_entries_kind_check
        CHECK (kind IN ('charge', 'release', 'unbilled', 'over_budget', 'over_cap')) NOT VALID;
"""


def upgrade() -> None:
    run(KINDS)
