"""What campaigns buy in contextual delivery, the sizes of banners, and which banners a campaign shows there."""

from adloom.migrations.statements import run

revision = "0022"
down_revision = "0021"

CAMPAIGNS = """
    ALTER TABLE campaigns
        ADD COLUMN categories varchar(20)[] NOT NULL DEFAULT '{}',
        ADD COLUMN ad_product_category varchar(20),
        ADD COLUMN bids_on_unmatched boolean NOT NULL DEFAULT false,
        ADD COLUMN target_cpa_micros bigint CHECK (target_cpa_micros >= 0),
        ADD COLUMN bid_strategy varchar(10) NOT NULL DEFAULT 'fixed'
            CHECK (bid_strategy IN ('fixed', 'pacer', 'fleet', 'dqn'));
"""
BANNERS = """
    ALTER TABLE banners
        ADD COLUMN width integer CHECK (width > 0),
        ADD COLUMN height integer CHECK (height > 0);
"""
CREATIVES = """
    CREATE TABLE creatives (
        campaign_id integer NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
        banner_id   integer NOT NULL REFERENCES banners (id) ON DELETE CASCADE,
        created_at  timestamptz NOT NULL,
        PRIMARY KEY (campaign_id, banner_id)
    );
    CREATE INDEX creatives_banner_id ON creatives (banner_id);
"""


def upgrade() -> None:
    run(CAMPAIGNS, BANNERS, CREATIVES)
