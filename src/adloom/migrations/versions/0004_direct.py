"""Direct delivery whole: schedules, targeting rules, references, sites, bids, the audit trail, search."""

from adloom.migrations.statements import run

revision = "0004"
down_revision = "0003"

REFERENCES = """
    CREATE TABLE brands (
        id         integer PRIMARY KEY,
        label      varchar(255) NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE categories (LIKE brands INCLUDING ALL);
    CREATE TABLE products (LIKE brands INCLUDING ALL);
    CREATE TABLE seo_records (
        id         uuid PRIMARY KEY,
        label      varchar(255) NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    );
"""

ACCOUNTS = """
    ALTER TABLE advertisers
        ADD COLUMN daily_budget_paisa bigint CHECK (daily_budget_paisa >= 0),
        ADD COLUMN timezone varchar(64) NOT NULL DEFAULT 'UTC',
        ADD COLUMN blocked_sites text[] NOT NULL DEFAULT '{}';
    CREATE TABLE sites (
        id           serial PRIMARY KEY,
        public_id    uuid NOT NULL UNIQUE,
        publisher_id integer REFERENCES publishers (id),
        domain       varchar(253) NOT NULL UNIQUE,
        name         varchar(255) NOT NULL,
        timezone     varchar(64) NOT NULL DEFAULT 'UTC',
        created_at   timestamptz NOT NULL DEFAULT now(),
        updated_at   timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX sites_publisher_id ON sites (publisher_id);
"""

PLACEMENTS = """
    CREATE TYPE placement_delivery AS ENUM ('direct', 'auction', 'contextual');
    ALTER TABLE placements
        ADD COLUMN delivery placement_delivery NOT NULL DEFAULT 'direct',
        ADD COLUMN placement_type varchar(50) NOT NULL DEFAULT 'banner',
        ADD COLUMN floor_cpm_micros bigint NOT NULL DEFAULT 0 CHECK (floor_cpm_micros >= 0),
        ADD COLUMN timezone varchar(64) NOT NULL DEFAULT 'UTC',
        ADD COLUMN site_id integer REFERENCES sites (id) ON DELETE SET NULL;
    CREATE INDEX placements_site_id ON placements (site_id);
"""

BANNERS = """
    CREATE TYPE banner_schedule_status AS ENUM ('draft', 'evergreen', 'scheduled', 'active', 'expired');
    ALTER TABLE banners
        ADD COLUMN brand_id integer REFERENCES brands (id) ON DELETE SET NULL,
        ADD COLUMN category_id integer REFERENCES categories (id) ON DELETE SET NULL,
        ADD COLUMN product_id integer REFERENCES products (id) ON DELETE SET NULL,
        ADD COLUMN seo_id uuid REFERENCES seo_records (id) ON DELETE SET NULL,
        ADD COLUMN publish_at timestamptz,
        ADD COLUMN expires_at timestamptz CHECK (publish_at < expires_at),
        ADD COLUMN schedule_timezone varchar(64) NOT NULL DEFAULT 'UTC',
        ADD COLUMN recurrence_rule text,
        ADD COLUMN recurrence_window_start time,
        ADD COLUMN recurrence_window_end time,
        ADD COLUMN schedule_status banner_schedule_status NOT NULL DEFAULT 'evergreen',
        ADD COLUMN is_evergreen_fallback boolean NOT NULL DEFAULT false,
        ADD COLUMN fallback_placeholder_url text,
        ADD COLUMN created_by uuid REFERENCES users (public_id) ON DELETE SET NULL;
    CREATE INDEX banners_brand_id ON banners (brand_id);
    CREATE INDEX banners_category_id ON banners (category_id);
    CREATE INDEX banners_product_id ON banners (product_id);
    CREATE INDEX banners_seo_id ON banners (seo_id);
    CREATE INDEX banners_due ON banners (publish_at, expires_at)
        WHERE schedule_status IN ('scheduled', 'active') AND deleted_at IS NULL;
"""

CAMPAIGNS = """
    CREATE TYPE campaign_bid_type AS ENUM ('cpm', 'cpc');
    CREATE TYPE campaign_pacing AS ENUM ('Smooth', 'Accelerated');
    ALTER TABLE campaigns
        ADD COLUMN budget_total_paisa bigint CHECK (budget_total_paisa >= 0),
        ADD COLUMN budget_daily_paisa bigint CHECK (budget_daily_paisa >= 0),
        ADD COLUMN impression_cap integer CHECK (impression_cap >= 0),
        ADD COLUMN click_cap integer CHECK (click_cap >= 0),
        ADD COLUMN bid_type campaign_bid_type NOT NULL DEFAULT 'cpm',
        ADD COLUMN bid_amount_micros bigint CHECK (bid_amount_micros >= 0),
        ADD COLUMN pacing_strategy campaign_pacing NOT NULL DEFAULT 'Smooth',
        ADD COLUMN timezone varchar(64) NOT NULL DEFAULT 'UTC',
        ADD COLUMN created_by uuid REFERENCES users (public_id) ON DELETE SET NULL;
    CREATE INDEX campaigns_due ON campaigns (starts_at, ends_at)
        WHERE status IN ('scheduled', 'active') AND deleted_at IS NULL;
"""

RULES = """
    CREATE TYPE targeting_rule_type AS ENUM (
        'device', 'country', 'user_segment', 'login_state', 'language',
        'hour_of_day', 'day_of_week', 'new_visitor', 'referrer_domain'
    );
    CREATE TABLE campaign_targeting_rules (
        id          serial PRIMARY KEY,
        public_id   uuid NOT NULL UNIQUE,
        campaign_id integer NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
        rule_type   targeting_rule_type NOT NULL,
        operator    varchar(32) NOT NULL,
        value       jsonb NOT NULL,
        is_active   boolean NOT NULL DEFAULT true,
        created_at  timestamptz NOT NULL DEFAULT now(),
        updated_at  timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX campaign_targeting_rules_campaign_id ON campaign_targeting_rules (campaign_id);
"""

STATISTICS = """
    CREATE TABLE banner_stats (
        id           serial PRIMARY KEY,
        banner_id    integer NOT NULL REFERENCES banners (id) ON DELETE CASCADE,
        placement_id integer NOT NULL REFERENCES placements (id) ON DELETE CASCADE,
        campaign_id  integer REFERENCES campaigns (id) ON DELETE SET NULL,
        stat_date    date NOT NULL,
        impressions  integer NOT NULL DEFAULT 0 CHECK (impressions >= 0),
        clicks       integer NOT NULL DEFAULT 0 CHECK (clicks >= 0),
        spend_paisa  bigint CHECK (spend_paisa >= 0 OR spend_paisa IS NULL),
        created_at   timestamptz NOT NULL DEFAULT now(),
        updated_at   timestamptz NOT NULL DEFAULT now(),
        UNIQUE NULLS NOT DISTINCT (banner_id, placement_id, campaign_id, stat_date)
    );
    CREATE INDEX banner_stats_stat_date ON banner_stats (stat_date);
    CREATE INDEX event_counts_campaign_id ON event_counts (campaign_id, day);
"""

# The moment of a link's last change, by which a stale write is told.
LINKS = """
    ALTER TABLE campaign_placements ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
    UPDATE campaign_placements SET updated_at = created_at;
"""

# `account_id` is for whom somebody acted, `owner_id` whose the thing is: an admin changes anybody's.
AUDIT = """
    CREATE TABLE audit_entries (
        id         bigserial PRIMARY KEY,
        at         timestamptz NOT NULL,
        subject    varchar(255) NOT NULL,
        role       varchar(20) NOT NULL,
        account_id uuid,
        owner_id   uuid,
        request_id varchar(128),
        noun       varchar(30) NOT NULL,
        noun_id    varchar(200) NOT NULL,
        action     varchar(30) NOT NULL,
        changes    jsonb NOT NULL
    );
    CREATE INDEX audit_entries_noun ON audit_entries (noun, noun_id, id);
    CREATE INDEX audit_entries_owner ON audit_entries (owner_id, id) WHERE owner_id IS NOT NULL;
    CREATE INDEX audit_entries_subject ON audit_entries (subject, id);
    CREATE INDEX audit_entries_at ON audit_entries USING brin (at);
"""

# Trusted since PostgreSQL 13: the owner of the database may add it.
SEARCH = """
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX banners_title_search ON banners USING gin (title gin_trgm_ops);
    CREATE INDEX banners_headline_search ON banners USING gin (headline gin_trgm_ops);
    CREATE INDEX banners_description_search ON banners USING gin (description gin_trgm_ops);
    CREATE INDEX placements_slug_search ON placements USING gin (slug gin_trgm_ops);
    CREATE INDEX placements_label_search ON placements USING gin (label gin_trgm_ops);
    CREATE INDEX placements_page_context_search ON placements USING gin (page_context gin_trgm_ops);
    CREATE INDEX campaigns_name_search ON campaigns USING gin (name gin_trgm_ops);
    CREATE INDEX campaigns_description_search ON campaigns USING gin (description gin_trgm_ops);
    CREATE INDEX campaigns_advertiser_name_search ON campaigns USING gin (advertiser_name gin_trgm_ops);
    CREATE INDEX sites_domain_search ON sites USING gin (domain gin_trgm_ops);
    CREATE INDEX sites_name_search ON sites USING gin (name gin_trgm_ops);
    CREATE INDEX advertisers_name_search ON advertisers USING gin (name gin_trgm_ops);
    CREATE INDEX publishers_name_search ON publishers USING gin (name gin_trgm_ops);
    CREATE INDEX brands_label_search ON brands USING gin (label gin_trgm_ops);
    CREATE INDEX categories_label_search ON categories USING gin (label gin_trgm_ops);
    CREATE INDEX products_label_search ON products USING gin (label gin_trgm_ops);
    CREATE INDEX seo_records_label_search ON seo_records USING gin (label gin_trgm_ops);
"""

# Lists are newest first unless they are asked for otherwise.
LISTS = """
    CREATE INDEX banners_created_at ON banners (created_at, id);
    CREATE INDEX campaigns_created_at ON campaigns (created_at, id);
    CREATE INDEX placements_created_at ON placements (created_at, id);
"""


def upgrade() -> None:
    run(REFERENCES, ACCOUNTS, PLACEMENTS, BANNERS, CAMPAIGNS, RULES, STATISTICS, LINKS, AUDIT, SEARCH, LISTS)
