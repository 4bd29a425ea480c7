"""Only a conversion that counts has the name to itself: others of it may come before or after.

The name of an order can be guessed, and whoever is shown an ad has a token to report with.
"""

from adloom.migrations.statements import run

revision = "0050"
down_revision = "0049"

NAMES = """
    ALTER TABLE events.conversions
        ADD COLUMN by_key boolean NOT NULL DEFAULT false,
        DROP CONSTRAINT conversions_pkey,
        ADD PRIMARY KEY (request_id, slot, campaign_id, name, by_key);
    CREATE UNIQUE INDEX ON events.conversions (campaign_id, name) WHERE is_counted;
    DROP INDEX IF EXISTS events.conversions_request_id_slot_idx;
"""


def upgrade() -> None:
    run(NAMES)
