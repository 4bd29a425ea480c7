"""What happened in contextual slots by creative, category and minute, and floors that move."""

from adloom.migrations.statements import run

revision = "0027"
down_revision = "0026"

# Rows are only added, by one writer, in the order of the event log; `id` says how far somebody has read.
RESULTS = """
    CREATE TABLE contextual_results (
        id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        site_id        integer NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
        banner_id      integer NOT NULL,
        category       varchar(20) NOT NULL,
        minute         timestamptz NOT NULL,
        impressions    integer NOT NULL,
        clicks         integer NOT NULL,
        revenue_micros bigint NOT NULL
    );
    CREATE INDEX contextual_results_site ON contextual_results (site_id, minute);
    CREATE INDEX contextual_results_minute ON contextual_results (minute);
    CREATE INDEX contextual_results_category ON contextual_results (category, id);
    ALTER TABLE category_results ADD COLUMN through bigint NOT NULL DEFAULT 0;
"""

# Clicks whose impression has not come yet.
WAITING = """
    CREATE TABLE contextual_clicks_waiting (
        request_id   uuid NOT NULL,
        slot         smallint NOT NULL,
        placement_id uuid NOT NULL,
        banner_id    uuid NOT NULL,
        category     varchar(20) NOT NULL,
        minute       timestamptz NOT NULL,
        PRIMARY KEY (request_id, slot)
    );
"""

# The floor of a category on a site, with the evidence for it; `tick` is the last quarter of an hour that it knows.
FLOORS = """
    CREATE TABLE category_floors (
        site_id    integer NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
        category   varchar(20) NOT NULL,
        tick       bigint NOT NULL,
        state      jsonb NOT NULL,
        updated_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (site_id, category)
    );
"""


def upgrade() -> None:
    run(RESULTS, WAITING, FLOORS)
