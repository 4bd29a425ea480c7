"""Sites whose pages are to be classified again, and how far that is."""

from adloom.migrations.statements import run

revision = "0021"
down_revision = "0020"

SITES = """
    CREATE TABLE classify_again (
        site_id      integer PRIMARY KEY REFERENCES sites (id) ON DELETE CASCADE,
        requested_at timestamptz NOT NULL,
        after_page   bigint NOT NULL DEFAULT 0
    );
"""


def upgrade() -> None:
    run(SITES)
