"""Since when campaigns of the house earn a publisher nothing.

Publishers that are there keep what statements of months that are over, and perhaps paid, have said.
"""

from adloom.migrations.statements import run

revision = "0049"
down_revision = "0048"

BEGIN = """
    ALTER TABLE publishers
        ADD COLUMN house_paid_before date DEFAULT date_trunc('month', now() AT TIME ZONE 'UTC')::date;
    ALTER TABLE publishers ALTER COLUMN house_paid_before DROP DEFAULT;
"""


def upgrade() -> None:
    run(BEGIN)
