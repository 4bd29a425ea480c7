"""Pages of sites: what they are about, the crawls that find them, and the URLs that a crawl has still to fetch."""

from adloom.migrations.statements import run

revision = "0017"
down_revision = "0016"

# `version` grows with every change of any page: whoever holds pages in memory reads on from the last one it knows.
# `url` is normalised. `content_hash` is of the extracted text: where it and the classifier are the same, the page
# is not classified again. A page that could not be fetched or read has `failure`.
PAGES = """
    CREATE SEQUENCE page_versions;
    CREATE TABLE site_pages (
        id                 bigserial PRIMARY KEY,
        public_id          uuid NOT NULL UNIQUE,
        site_id            integer NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
        version            bigint NOT NULL DEFAULT nextval('page_versions'),
        url                varchar(2048) NOT NULL,
        title              varchar(500),
        language           varchar(8),
        categories         jsonb NOT NULL DEFAULT '[]',
        evidence           jsonb NOT NULL DEFAULT '[]',
        source             varchar(10) NOT NULL CHECK (source IN ('crawl', 'tag', 'api', 'given')),
        classifier         varchar(50),
        classifier_version varchar(50),
        content_hash       bytea,
        text_start         varchar(2000),
        etag               varchar(500),
        last_modified      varchar(100),
        failure            varchar(500),
        fetched_at         timestamptz,
        classified_at      timestamptz,
        expires_at         timestamptz,
        created_at         timestamptz NOT NULL,
        updated_at         timestamptz NOT NULL,
        UNIQUE (site_id, url)
    );
    CREATE INDEX site_pages_version ON site_pages (version);
    CREATE INDEX site_pages_expires_at ON site_pages (site_id, expires_at);
"""

# At most one crawl of a site at a time.
CRAWLS = """
    CREATE TABLE site_crawls (
        id                bigserial PRIMARY KEY,
        public_id         uuid NOT NULL UNIQUE,
        site_id           integer NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
        state             varchar(10) NOT NULL CHECK (state IN ('queued', 'running', 'finished', 'failed')),
        reason            varchar(500),
        is_cancelled      boolean NOT NULL DEFAULT false,
        created_at        timestamptz NOT NULL,
        started_at        timestamptz,
        finished_at       timestamptz,
        pages_fetched     integer NOT NULL DEFAULT 0,
        pages_classified  integer NOT NULL DEFAULT 0,
        pages_unchanged   integer NOT NULL DEFAULT 0,
        pages_failed      integer NOT NULL DEFAULT 0,
        pages_without_text integer NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX site_crawls_one_a_site ON site_crawls (site_id) WHERE state IN ('queued', 'running');
    CREATE INDEX site_crawls_site_id ON site_crawls (site_id, created_at);
"""

# What a crawl has found: a crawl that was interrupted goes on with the rows that are still waiting.
CRAWL_URLS = """
    CREATE TABLE crawl_urls (
        crawl_id bigint NOT NULL REFERENCES site_crawls (id) ON DELETE CASCADE,
        position integer NOT NULL,
        url      varchar(2048) NOT NULL,
        address  varchar(2048) NOT NULL,
        depth    smallint NOT NULL,
        state    varchar(10) NOT NULL DEFAULT 'waiting'
                 CHECK (state IN ('waiting', 'fetched', 'unchanged', 'failed', 'skipped')),
        reason   varchar(500),
        PRIMARY KEY (crawl_id, url)
    );
    CREATE INDEX crawl_urls_waiting ON crawl_urls (crawl_id, depth, position) WHERE state = 'waiting';
"""


def upgrade() -> None:
    run(PAGES, CRAWLS, CRAWL_URLS)
