"""Stats sync: what an outside ad account consists of, and its statistics as they were fetched and as they count."""

from alembic import op

from adloom.migrations.statements import run

revision = "0009"
down_revision = "0008"

# What is deleted stays, hidden, so that statistics of the past keep what they are about. An external id stands
# once in what it belongs to, or its statistics would be counted twice. Credentials are sealed (`runtime/encryption.py`).
ACCOUNTS = """
    CREATE SCHEMA sync;
    CREATE TABLE sync.ad_accounts (
        id                     serial PRIMARY KEY,
        public_id              uuid NOT NULL UNIQUE,
        advertiser_id          integer NOT NULL REFERENCES advertisers (id),
        name                   varchar(255) NOT NULL,
        platform               varchar(20) NOT NULL DEFAULT 'mock' CHECK (platform IN ('mock', 'meta', 'adloom')),
        external_id            varchar(255),
        is_active              boolean NOT NULL DEFAULT true,
        currency               varchar(3) NOT NULL DEFAULT 'USD' CHECK (currency ~ '^[A-Z]{3}$'),
        timezone               varchar(64) NOT NULL DEFAULT 'UTC',
        credentials            bytea,
        credentials_expired_at timestamptz,
        credentials_problem    varchar(500),
        created_at             timestamptz NOT NULL DEFAULT now(),
        updated_at             timestamptz NOT NULL DEFAULT now(),
        deleted_at             timestamptz,
        CHECK ((credentials_expired_at IS NULL) = (credentials_problem IS NULL))
    );
    CREATE INDEX ad_accounts_advertiser_id ON sync.ad_accounts (advertiser_id);
    CREATE INDEX ad_accounts_expired ON sync.ad_accounts (credentials_expired_at)
        WHERE credentials_expired_at IS NOT NULL;
    CREATE TABLE sync.sellpages (
        id            serial PRIMARY KEY,
        public_id     uuid NOT NULL UNIQUE,
        advertiser_id integer NOT NULL REFERENCES advertisers (id),
        name          varchar(255) NOT NULL,
        url           text,
        created_at    timestamptz NOT NULL DEFAULT now(),
        updated_at    timestamptz NOT NULL DEFAULT now(),
        deleted_at    timestamptz
    );
    CREATE INDEX sellpages_advertiser_id ON sync.sellpages (advertiser_id);
"""

HIERARCHY = """
    CREATE TABLE sync.campaigns (
        id                   serial PRIMARY KEY,
        public_id            uuid NOT NULL UNIQUE,
        advertiser_id        integer NOT NULL REFERENCES advertisers (id),
        ad_account_id        integer NOT NULL REFERENCES sync.ad_accounts (id),
        sellpage_id          integer NOT NULL REFERENCES sync.sellpages (id),
        name                 varchar(255) NOT NULL,
        status               varchar(20) NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'PAUSED', 'ARCHIVED')),
        budget               numeric(12,2) NOT NULL CHECK (budget >= 0),
        budget_type          varchar(20) NOT NULL DEFAULT 'DAILY' CHECK (budget_type IN ('DAILY', 'LIFETIME')),
        external_campaign_id varchar(255),
        created_at           timestamptz NOT NULL DEFAULT now(),
        updated_at           timestamptz NOT NULL DEFAULT now(),
        deleted_at           timestamptz
    );
    CREATE INDEX campaigns_advertiser_id ON sync.campaigns (advertiser_id);
    CREATE INDEX campaigns_ad_account_id ON sync.campaigns (ad_account_id);
    CREATE INDEX campaigns_sellpage_id ON sync.campaigns (sellpage_id);
    CREATE UNIQUE INDEX uq_campaigns_external_id ON sync.campaigns (advertiser_id, external_campaign_id)
        WHERE external_campaign_id IS NOT NULL AND deleted_at IS NULL;
    CREATE TABLE sync.adsets (
        id                serial PRIMARY KEY,
        public_id         uuid NOT NULL UNIQUE,
        advertiser_id     integer NOT NULL REFERENCES advertisers (id),
        campaign_id       integer NOT NULL REFERENCES sync.campaigns (id),
        name              varchar(255) NOT NULL,
        status            varchar(20) NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'PAUSED', 'ARCHIVED')),
        external_adset_id varchar(255),
        created_at        timestamptz NOT NULL DEFAULT now(),
        updated_at        timestamptz NOT NULL DEFAULT now(),
        deleted_at        timestamptz
    );
    CREATE INDEX adsets_advertiser_id ON sync.adsets (advertiser_id);
    CREATE INDEX adsets_campaign_id ON sync.adsets (campaign_id);
    CREATE UNIQUE INDEX uq_adsets_external_id ON sync.adsets (campaign_id, external_adset_id)
        WHERE external_adset_id IS NOT NULL AND deleted_at IS NULL;
    CREATE TABLE sync.ads (
        id             serial PRIMARY KEY,
        public_id      uuid NOT NULL UNIQUE,
        advertiser_id  integer NOT NULL REFERENCES advertisers (id),
        adset_id       integer NOT NULL REFERENCES sync.adsets (id),
        name           varchar(255) NOT NULL,
        status         varchar(20) NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'PAUSED', 'ARCHIVED')),
        external_ad_id varchar(255),
        created_at     timestamptz NOT NULL DEFAULT now(),
        updated_at     timestamptz NOT NULL DEFAULT now(),
        deleted_at     timestamptz
    );
    CREATE INDEX ads_advertiser_id ON sync.ads (advertiser_id);
    CREATE INDEX ads_adset_id ON sync.ads (adset_id);
    CREATE UNIQUE INDEX uq_ads_external_id ON sync.ads (adset_id, external_ad_id)
        WHERE external_ad_id IS NOT NULL AND deleted_at IS NULL;
"""

# Public ids and no foreign keys: statistics are joined by what the outside calls them, stay when their entity
# goes, and a month attached to a table with foreign keys would lock the advertisers meanwhile.
# A snapshot says what a day has come to so far; a delta adds its `part` of it (an hour, say), and the same part
# again replaces itself. Rows of raw are never changed, so that one can see what a platform has said, and when.
STATISTICS = """
    CREATE TABLE sync.ad_stats_raw (
        id                 bigint GENERATED BY DEFAULT AS IDENTITY,
        seller_id          uuid NOT NULL,
        entity_type        varchar(10) NOT NULL CHECK (entity_type IN ('CAMPAIGN', 'ADSET', 'AD')),
        entity_id          uuid NOT NULL,
        external_entity_id varchar(255) NOT NULL,
        provider           varchar(20) NOT NULL,
        semantics          varchar(10) NOT NULL CHECK (semantics IN ('snapshot', 'delta')),
        part               varchar(50) NOT NULL DEFAULT '',
        fetched_at         timestamptz NOT NULL,
        date_start         date NOT NULL,
        date_stop          date NOT NULL,
        spend              numeric(18,2) NOT NULL CHECK (spend >= 0),
        impressions        bigint NOT NULL CHECK (impressions >= 0),
        link_clicks        bigint NOT NULL CHECK (link_clicks >= 0),
        content_views      bigint NOT NULL CHECK (content_views >= 0),
        add_to_cart        bigint NOT NULL CHECK (add_to_cart >= 0),
        checkout_initiated bigint NOT NULL CHECK (checkout_initiated >= 0),
        purchases          bigint NOT NULL CHECK (purchases >= 0),
        purchase_value     numeric(18,2) NOT NULL CHECK (purchase_value >= 0),
        cpm                numeric(24,4) NOT NULL,
        ctr                numeric(24,4) NOT NULL,
        cpc                numeric(24,4) NOT NULL,
        cost_per_purchase  numeric(24,4) NOT NULL,
        roas               numeric(24,4) NOT NULL,
        CHECK ((semantics = 'delta') = (part <> '')),
        CHECK (date_start <= date_stop)
    ) PARTITION BY RANGE (date_start);
    CREATE INDEX ad_stats_raw_entity
        ON sync.ad_stats_raw (seller_id, entity_type, entity_id, date_start, fetched_at DESC, id DESC);
    CREATE TABLE sync.ad_stats_daily (
        seller_id          uuid NOT NULL,
        entity_type        varchar(10) NOT NULL CHECK (entity_type IN ('CAMPAIGN', 'ADSET', 'AD')),
        entity_id          uuid NOT NULL,
        stat_date          date NOT NULL,
        spend              numeric(18,2) NOT NULL,
        impressions        bigint NOT NULL,
        link_clicks        bigint NOT NULL,
        content_views      bigint NOT NULL,
        add_to_cart        bigint NOT NULL,
        checkout_initiated bigint NOT NULL,
        purchases          bigint NOT NULL,
        purchase_value     numeric(18,2) NOT NULL,
        cpm                numeric(24,4) NOT NULL,
        ctr                numeric(24,4) NOT NULL,
        cpc                numeric(24,4) NOT NULL,
        cost_per_purchase  numeric(24,4) NOT NULL,
        roas               numeric(24,4) NOT NULL,
        created_at         timestamptz NOT NULL,
        updated_at         timestamptz NOT NULL,
        CONSTRAINT uq_ad_stats_daily UNIQUE (seller_id, entity_type, entity_id, stat_date)
    ) PARTITION BY RANGE (stat_date);
    CREATE INDEX ad_stats_daily_date ON sync.ad_stats_daily (seller_id, entity_type, stat_date);
    CREATE TABLE sync.sellpage_stats_daily (
        seller_id          uuid NOT NULL,
        sellpage_id        uuid NOT NULL,
        stat_date          date NOT NULL,
        ad_source          varchar(20) NOT NULL CHECK (ad_source IN ('META', 'ADLOOM')),
        ad_spend           numeric(18,2) NOT NULL,
        impressions        bigint NOT NULL,
        link_clicks        bigint NOT NULL,
        content_views      bigint NOT NULL,
        add_to_cart        bigint NOT NULL,
        checkout_initiated bigint NOT NULL,
        purchases          bigint NOT NULL,
        purchase_value     numeric(18,2) NOT NULL,
        orders_count       bigint NOT NULL,
        revenue            numeric(18,2) NOT NULL,
        cpm                numeric(24,4) NOT NULL,
        ctr                numeric(24,4) NOT NULL,
        cost_per_purchase  numeric(24,4) NOT NULL,
        roas               numeric(24,4) NOT NULL,
        cr1                numeric(24,4) NOT NULL,
        cr2                numeric(24,4) NOT NULL,
        cr3                numeric(24,4) NOT NULL,
        created_at         timestamptz NOT NULL,
        updated_at         timestamptz NOT NULL,
        CONSTRAINT uq_sellpage_stats_daily UNIQUE (seller_id, sellpage_id, stat_date, ad_source)
    ) PARTITION BY RANGE (stat_date);
    CREATE INDEX sellpage_stats_daily_date ON sync.sellpage_stats_daily (seller_id, stat_date);
"""

# When the figures of a seller were last brought up to date on a level: what monitors ask for.
FRESHNESS = """
    CREATE TABLE sync.freshness (
        seller_id  uuid NOT NULL,
        level      varchar(10) NOT NULL CHECK (level IN ('CAMPAIGN', 'ADSET', 'AD')),
        newest_day date NOT NULL,
        synced_at  timestamptz NOT NULL,
        PRIMARY KEY (seller_id, level)
    ) WITH (fillfactor = 50);
"""

# As `ensure_event_day` of 0005: whoever makes a month waits for others who do, and then looks again.
MONTHS = """
    CREATE FUNCTION sync.ensure_month(of_day date) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        parent name;
        partition name;
        first_day date := date_trunc('month', of_day);
    BEGIN
        FOREACH parent IN ARRAY ARRAY['ad_stats_raw', 'ad_stats_daily', 'sellpage_stats_daily'] LOOP
            partition := format('%s_%s', parent, to_char(first_day, 'YYYYMM'));
            CONTINUE WHEN to_regclass(format('sync.%I', partition)) IS NOT NULL;
            PERFORM pg_advisory_xact_lock(x'AD17'::integer, 1);
            CONTINUE WHEN EXISTS (
                SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
                 WHERE nspname = 'sync' AND relname = partition
            );
            EXECUTE format(
                'CREATE TABLE sync.%I (LIKE sync.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition, parent
            );
            EXECUTE format(
                'ALTER TABLE sync.%I ATTACH PARTITION sync.%I FOR VALUES FROM (%L) TO (%L)',
                parent, partition, first_day, (first_day + interval '1 month')::date
            );
        END LOOP;
    END $$
"""


def upgrade() -> None:
    run(ACCOUNTS, HIERARCHY, STATISTICS, FRESHNESS)
    op.execute(MONTHS)
