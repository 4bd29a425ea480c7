"""The shapes of days that were learned from traffic, by site; 0 is the installation."""

from adloom.migrations.statements import run

revision = "0025"
down_revision = "0024"

SHAPES = """
    CREATE TABLE traffic_shapes (
        site_id    integer PRIMARY KEY,
        learned    jsonb NOT NULL,
        updated_at timestamptz NOT NULL
    );
"""


def upgrade() -> None:
    run(SHAPES)
