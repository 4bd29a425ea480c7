"""Crawls that go on after a restart, and that ask only for pages that have changed; proofs of whose a site is."""

from adloom.migrations.statements import run

revision = "0020"
down_revision = "0019"

# `content_hash` is what was sent to the classifier: the crawl counts the pages that have it. `links` are positions
# of this crawl: a page that has not changed since is not sent again, and its links are these.
CRAWL_URLS = """
    ALTER TABLE crawl_urls ADD COLUMN content_hash bytea, ADD COLUMN links integer[];
    CREATE INDEX crawl_urls_position ON crawl_urls (crawl_id, position);
"""

# A site without a row was never asked to prove itself. `failures` are those in a row since the last success.
# `withdrawn_at` is when a site that was proven was found not to be any more.
VERIFICATIONS = """
    CREATE TABLE site_verifications (
        site_id      integer PRIMARY KEY REFERENCES sites (id) ON DELETE CASCADE,
        token        varchar(100) NOT NULL,
        domain       varchar(253) NOT NULL,
        is_forced    boolean NOT NULL DEFAULT false,
        failures     integer NOT NULL DEFAULT 0,
        reason       varchar(500),
        checked_at   timestamptz,
        withdrawn_at timestamptz,
        created_at   timestamptz NOT NULL
    );
"""


def upgrade() -> None:
    run(CRAWL_URLS, VERIFICATIONS)
