"""How a placement chooses among banners of one display order."""

from adloom.migrations.statements import run

revision = "0034"
down_revision = "0033"

ROTATION = """
    ALTER TABLE placements
        ADD COLUMN rotation varchar(20) NOT NULL DEFAULT 'ordered'
            CHECK (rotation IN ('ordered', 'weighted', 'best'));
"""
# The counts of the placements that let the better banner win are read every few seconds.
COUNTS_BY_PLACEMENT = "CREATE INDEX ON events.event_counts (placement_id, hour);"


def upgrade() -> None:
    run(ROTATION)
    run(COUNTS_BY_PLACEMENT)
