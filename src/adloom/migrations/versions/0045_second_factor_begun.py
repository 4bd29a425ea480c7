"""When setting up a second factor was begun: its secret is shown again for minutes only."""

from adloom.migrations.statements import run

revision = "0045"
down_revision = "0044"

BEGUN = "ALTER TABLE second_factors ADD COLUMN begun_at timestamptz NOT NULL DEFAULT now()"


def upgrade() -> None:
    run(BEGUN)
