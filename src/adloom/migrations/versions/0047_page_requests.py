"""Requests of contextual slots, by hour and by page: a simulated market needs to know what is asked for."""

from adloom.migrations.statements import run

revision = "0047"
down_revision = "0046"

# Only requests from pages that are classified. Of days before the last eight nothing is kept.
REQUESTS = """
    CREATE TABLE slot_requests (
        placement_id integer NOT NULL REFERENCES placements (id) ON DELETE CASCADE,
        hour         timestamptz NOT NULL,
        requests     bigint NOT NULL,
        filled       bigint NOT NULL,
        PRIMARY KEY (placement_id, hour)
    );
    CREATE TABLE page_requests (
        day          date NOT NULL,
        placement_id integer NOT NULL REFERENCES placements (id) ON DELETE CASCADE,
        page_id      bigint NOT NULL REFERENCES site_pages (id) ON DELETE CASCADE,
        requests     bigint NOT NULL,
        PRIMARY KEY (placement_id, day, page_id)
    );
    CREATE INDEX page_requests_page ON page_requests (page_id);
"""


def upgrade() -> None:
    run(REQUESTS)
