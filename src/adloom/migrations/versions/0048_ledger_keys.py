"""The money ledger has no number for each row: nothing reads it, and its index took a fifth of the server's time for a charge."""

from adloom.migrations.statements import run

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    run("ALTER TABLE money_entries DROP COLUMN id")


def downgrade() -> None:
    run("ALTER TABLE money_entries ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
