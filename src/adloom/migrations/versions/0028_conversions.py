"""Conversions of clicks, and how many there were by hour and by day."""

from adloom.migrations.statements import run

revision = "0028"
down_revision = "0027"

# Sums of values have no bound that a single value has, so they are no integers.
COUNTS = """
    ALTER TABLE events.event_counts
        ADD COLUMN conversions bigint NOT NULL DEFAULT 0 CHECK (conversions >= 0),
        ADD COLUMN conversion_micros numeric(30) NOT NULL DEFAULT 0 CHECK (conversion_micros >= 0);
    ALTER TABLE banner_stats
        ADD COLUMN conversions integer NOT NULL DEFAULT 0 CHECK (conversions >= 0),
        ADD COLUMN conversion_micros numeric(30) NOT NULL DEFAULT 0 CHECK (conversion_micros >= 0);
"""

# `name` is a digest of what its sender calls it: an order may be called by its buyer.
# A conversion is counted when its offer has a valid click that is young enough, whichever came first; until then
# `marks` say what is missing. Country and device are those of the click.
CONVERSIONS = """
    CREATE TABLE events.conversions (
        campaign_id  integer NOT NULL,
        name         bytea NOT NULL,
        banner_id    integer NOT NULL,
        placement_id integer NOT NULL,
        request_id   uuid NOT NULL,
        slot         smallint NOT NULL,
        offered_at   timestamptz NOT NULL,
        occurred_at  timestamptz NOT NULL,
        received_at  timestamptz NOT NULL,
        value_micros bigint NOT NULL CHECK (value_micros >= 0),
        currency     varchar(3),
        country_code varchar(2),
        device_type  varchar(20),
        marks        text[],
        is_counted   boolean NOT NULL DEFAULT false,
        entry_ms     bigint NOT NULL,
        entry_seq    bigint NOT NULL,
        PRIMARY KEY (campaign_id, name)
    );
    CREATE INDEX ON events.conversions (request_id, slot);
    CREATE INDEX ON events.conversions (occurred_at);
"""

CAMPAIGNS = """
    ALTER TABLE campaigns ADD COLUMN passes_click_id boolean NOT NULL DEFAULT false;
"""


def upgrade() -> None:
    run(COUNTS, CONVERSIONS, CAMPAIGNS)
