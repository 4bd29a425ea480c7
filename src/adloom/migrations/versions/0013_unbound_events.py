"""Events without a token are counted apart from those of offers."""

from adloom.migrations.statements import run

revision = "0013"
down_revision = "0012"

COUNTS = """
    ALTER TABLE events.event_counts
        ADD COLUMN unbound_impressions bigint NOT NULL DEFAULT 0 CHECK (unbound_impressions >= 0),
        ADD COLUMN unbound_clicks bigint NOT NULL DEFAULT 0 CHECK (unbound_clicks >= 0);
    ALTER TABLE banner_stats
        ADD COLUMN unbound_impressions integer NOT NULL DEFAULT 0 CHECK (unbound_impressions >= 0),
        ADD COLUMN unbound_clicks integer NOT NULL DEFAULT 0 CHECK (unbound_clicks >= 0);
"""


def upgrade() -> None:
    run(COUNTS)
