"""Categories of pages on which a campaign does not want to be."""

from adloom.migrations.statements import run

revision = "0052"
down_revision = "0051"

CAMPAIGNS = "ALTER TABLE campaigns ADD COLUMN excluded_categories varchar(20)[] NOT NULL DEFAULT '{}'"


def upgrade() -> None:
    run(CAMPAIGNS)
