"""The money ledger without an index of its numbers, which nothing reads: that index took a fifth of what a charge costs.

An offer is charged once by the index of offers. Numbers are made by the server only, so they stay different from each
other. Dropping an index takes a moment, however many rows there are.
"""

from adloom.migrations.statements import run

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    run("ALTER TABLE money_entries DROP CONSTRAINT money_entries_pkey")


def downgrade() -> None:
    run("ALTER TABLE money_entries ADD PRIMARY KEY (id)")
