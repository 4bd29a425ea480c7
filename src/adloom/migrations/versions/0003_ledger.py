"""What the ledger's projections fold events into."""

from adloom.migrations.statements import run

revision = "0003"
down_revision = "0002"

# The primary key makes a replay change nothing: the same correlation id is the same event.
EVENTS = """
    CREATE TABLE banner_impressions (
        correlation_id varchar(128) PRIMARY KEY,
        banner_id      integer NOT NULL REFERENCES banners (id) ON DELETE CASCADE,
        placement_id   integer NOT NULL REFERENCES placements (id) ON DELETE CASCADE,
        campaign_id    integer REFERENCES campaigns (id) ON DELETE SET NULL,
        request_id     uuid,
        session_id     varchar(128),
        user_id        uuid,
        device_type    varchar(20),
        country_code   varchar(2),
        page_url       text,
        referrer_url   text,
        occurred_at    timestamptz NOT NULL
    );
    CREATE INDEX banner_impressions_occurred_at ON banner_impressions USING brin (occurred_at);
    CREATE TABLE banner_clicks (
        correlation_id  varchar(128) PRIMARY KEY,
        banner_id       integer NOT NULL REFERENCES banners (id) ON DELETE CASCADE,
        placement_id    integer NOT NULL REFERENCES placements (id) ON DELETE CASCADE,
        campaign_id     integer REFERENCES campaigns (id) ON DELETE SET NULL,
        request_id      uuid,
        session_id      varchar(128),
        user_id         uuid,
        device_type     varchar(20),
        country_code    varchar(2),
        page_url        text,
        destination_url text,
        occurred_at     timestamptz NOT NULL
    );
    CREATE INDEX banner_clicks_occurred_at ON banner_clicks USING brin (occurred_at);
"""

# BatchResult in the transaction that inserts the events, so that counts and rows never disagree.
COUNTS = """
    CREATE TABLE event_counts (
        day          date NOT NULL,
        banner_id    integer NOT NULL REFERENCES banners (id) ON DELETE CASCADE,
        placement_id integer NOT NULL REFERENCES placements (id) ON DELETE CASCADE,
        campaign_id  integer REFERENCES campaigns (id) ON DELETE SET NULL,
        impressions  bigint NOT NULL DEFAULT 0 CHECK (impressions >= 0),
        clicks       bigint NOT NULL DEFAULT 0 CHECK (clicks >= 0),
        UNIQUE NULLS NOT DISTINCT (day, banner_id, placement_id, campaign_id)
    );
    CREATE TABLE projection_cursors (
        projection varchar(50) PRIMARY KEY,
        entry_id   varchar(50) NOT NULL,
        moved_at   timestamptz NOT NULL DEFAULT now()
    );
"""


def upgrade() -> None:
    run(EVENTS, COUNTS)
