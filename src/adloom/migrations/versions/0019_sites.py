"""Sites: how they are crawled and verified, and the terms under which their pages are sold."""

from adloom.migrations.statements import run

revision = "0019"
down_revision = "0018"

# A site that is there already is not crawled by itself: nobody asked for that.
CRAWLING = """
    ALTER TABLE sites
        ADD COLUMN seed_url varchar(2048),
        ADD COLUMN cron_schedule varchar(100),
        ADD COLUMN max_depth smallint NOT NULL DEFAULT 2 CHECK (max_depth BETWEEN 0 AND 5),
        ADD COLUMN max_pages integer NOT NULL DEFAULT 1000 CHECK (max_pages BETWEEN 1 AND 10000),
        ADD COLUMN crawl_concurrency smallint NOT NULL DEFAULT 5 CHECK (crawl_concurrency BETWEEN 1 AND 8),
        ADD COLUMN host_pattern varchar(500),
        ADD COLUMN verified_at timestamptz,
        ADD COLUMN verified_host varchar(253),
        ADD CHECK ((verified_at IS NULL) = (verified_host IS NULL))
"""
TERMS = """
    ALTER TABLE sites
        ADD COLUMN ad_product_blocklist varchar(20)[] NOT NULL DEFAULT '{}',
        ADD COLUMN blocked_domains varchar(253)[] NOT NULL DEFAULT '{}',
        ADD COLUMN approval_mode varchar(10) NOT NULL DEFAULT 'manual'
            CHECK (approval_mode IN ('manual', 'trusted', 'automatic')),
        ADD COLUMN floor_cpm_micros bigint NOT NULL DEFAULT 500000,
        ADD COLUMN min_floor_cpm_micros bigint NOT NULL DEFAULT 100000,
        ADD COLUMN floor_mode varchar(10) NOT NULL DEFAULT 'fixed' CHECK (floor_mode IN ('fixed', 'sweep')),
        ADD COLUMN auction_mode varchar(20) NOT NULL DEFAULT 'second_price'
            CHECK (auction_mode IN ('second_price', 'first_price')),
        ADD COLUMN bid_weight double precision NOT NULL DEFAULT 0.5 CHECK (bid_weight BETWEEN 0.1 AND 1),
        ADD COLUMN accepts_filler boolean NOT NULL DEFAULT true,
        ADD COLUMN is_suspended boolean NOT NULL DEFAULT false,
        ADD COLUMN pacing jsonb NOT NULL DEFAULT '{}',
        ADD CHECK (0 <= min_floor_cpm_micros AND min_floor_cpm_micros <= floor_cpm_micros)
"""


def upgrade() -> None:
    run(CRAWLING, TERMS)
