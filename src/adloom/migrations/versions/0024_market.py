"""The contextual market: demand by campaign, versions of categories, results, shortlists, and approvals."""

from adloom.migrations.statements import run

revision = "0024"
down_revision = "0023"

# What the directory of campaigns knows; without `demand` the campaign bids no more.
DEMAND = """
    CREATE TABLE contextual_demand (
        campaign_id uuid PRIMARY KEY,
        version     bigint NOT NULL,
        demand      jsonb
    );
    CREATE INDEX contextual_demand_categories ON contextual_demand USING gin ((demand -> 'wanted'));
    CREATE TABLE demand_versions (
        category   varchar(20) PRIMARY KEY,
        version    bigint NOT NULL,
        changed_at timestamptz NOT NULL DEFAULT now()
    );
"""

# Impressions and clicks of a category on a site as of a moment; `*` is all sites together.
RESULTS = """
    CREATE TABLE category_results (
        category    varchar(20) NOT NULL,
        site        varchar(36) NOT NULL,
        impressions double precision NOT NULL,
        clicks      double precision NOT NULL,
        at          timestamptz NOT NULL,
        PRIMARY KEY (category, site)
    );
"""

# What may fill the slots of a page. A page that is gone has no slots until its row expires.
SHORTLISTS = """
    CREATE TABLE shortlists (
        site_id    integer NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
        url        varchar(2048) NOT NULL,
        version    bigint NOT NULL,
        slots      jsonb NOT NULL,
        updated_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        PRIMARY KEY (site_id, url)
    );
    CREATE INDEX shortlists_version ON shortlists (site_id, version);
    CREATE INDEX shortlists_expires_at ON shortlists (expires_at);
"""

# What the publisher of a site says of a banner; `decided_by` is empty while nobody has.
APPROVALS = """
    CREATE TABLE site_approvals (
        site_id       integer NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
        banner_id     integer NOT NULL REFERENCES banners (id) ON DELETE CASCADE,
        campaign_id   integer NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
        state         varchar(10) NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'flagged')),
        reason        varchar(500),
        first_seen_at timestamptz NOT NULL,
        decided_at    timestamptz,
        decided_by    varchar(255),
        PRIMARY KEY (site_id, banner_id)
    );
    CREATE INDEX site_approvals_state ON site_approvals (site_id, state);
    CREATE INDEX site_approvals_banner_id ON site_approvals (banner_id);
"""


def upgrade() -> None:
    run(DEMAND, RESULTS, SHORTLISTS, APPROVALS)
