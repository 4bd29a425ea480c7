"""The catalog: who may show what, where and when, and the version that orders its changes."""

from adloom.migrations.statements import run

revision = "0001"
down_revision = None

ACCOUNTS = """
    CREATE TABLE advertisers (
        id          serial PRIMARY KEY,
        public_id   uuid NOT NULL UNIQUE,
        name        varchar(255) NOT NULL,
        created_at  timestamptz NOT NULL DEFAULT now(),
        updated_at  timestamptz NOT NULL DEFAULT now(),
        deleted_at  timestamptz
    );
    CREATE TABLE publishers (
        id          serial PRIMARY KEY,
        public_id   uuid NOT NULL UNIQUE,
        name        varchar(255) NOT NULL,
        created_at  timestamptz NOT NULL DEFAULT now(),
        updated_at  timestamptz NOT NULL DEFAULT now(),
        deleted_at  timestamptz
    );
"""

PLACEMENTS = """
    CREATE TYPE placement_layout AS ENUM (
        'full_slider', 'full_static', 'half_pair', 'quarter_grid', 'sidebar_stack',
        'sidebar_single', 'interstitial', 'popup', 'inline_card', 'sticky_bar'
    );
    CREATE TABLE placements (
        id                       serial PRIMARY KEY,
        public_id                uuid NOT NULL UNIQUE,
        publisher_id             integer REFERENCES publishers (id),
        slug                     varchar(100) NOT NULL UNIQUE,
        label                    varchar(255) NOT NULL,
        layout_type              placement_layout NOT NULL,
        page_context             varchar(100),
        max_banners              integer NOT NULL DEFAULT 1 CHECK (max_banners > 0),
        recommended_width        integer CHECK (recommended_width > 0),
        recommended_height       integer CHECK (recommended_height > 0),
        recommended_aspect_ratio varchar(20),
        notes                    text,
        is_active                boolean NOT NULL DEFAULT true,
        sort_order               integer NOT NULL DEFAULT 0 CHECK (sort_order >= 0),
        fallback_placeholder_url text,
        allow_partial_render     boolean NOT NULL DEFAULT false,
        created_at               timestamptz NOT NULL DEFAULT now(),
        updated_at               timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX placements_publisher_id ON placements (publisher_id);
"""

BANNERS = """
    CREATE TYPE banner_source AS ENUM ('internal', 'sponsored', 'affiliate', 'system');
    CREATE TABLE banners (
        id                serial PRIMARY KEY,
        public_id         uuid NOT NULL UNIQUE,
        advertiser_id     integer REFERENCES advertisers (id),
        title             varchar(255) NOT NULL,
        description       text,
        source            banner_source NOT NULL DEFAULT 'internal',
        is_active         boolean NOT NULL DEFAULT true,
        primary_image_url text NOT NULL,
        primary_image_alt varchar(255),
        mobile_image_url  text,
        video_url         text,
        media_variants    jsonb NOT NULL DEFAULT '{}',
        headline          varchar(255),
        subheadline       varchar(255),
        cta_label         varchar(100),
        cta_url           text,
        cta_open_new_tab  boolean NOT NULL DEFAULT false,
        utm_source        varchar(100),
        utm_medium        varchar(100),
        utm_campaign      varchar(100),
        utm_content       varchar(100),
        tags              text[] NOT NULL DEFAULT '{}',
        bg_color          varchar(7) CHECK (bg_color ~ '^#[0-9a-fA-F]{6}$'),
        priority          integer NOT NULL DEFAULT 0 CHECK (priority >= 0),
        created_at        timestamptz NOT NULL DEFAULT now(),
        updated_at        timestamptz NOT NULL DEFAULT now(),
        deleted_at        timestamptz
    );
    CREATE INDEX banners_advertiser_id ON banners (advertiser_id);
    CREATE INDEX banners_tags ON banners USING gin (tags);
"""

CAMPAIGNS = """
    CREATE TYPE campaign_status AS ENUM ('draft', 'scheduled', 'active', 'paused', 'ended', 'cancelled');
    CREATE TABLE campaigns (
        id                 serial PRIMARY KEY,
        public_id          uuid NOT NULL UNIQUE,
        advertiser_id      integer REFERENCES advertisers (id),
        name               varchar(255) NOT NULL,
        description        text,
        source             banner_source NOT NULL DEFAULT 'internal',
        status             campaign_status NOT NULL DEFAULT 'draft',
        starts_at          timestamptz,
        ends_at            timestamptz CHECK (starts_at < ends_at),
        advertiser_name    varchar(255),
        advertiser_contact varchar(255),
        contract_ref       varchar(255),
        priority           integer NOT NULL DEFAULT 0 CHECK (priority >= 0),
        created_at         timestamptz NOT NULL DEFAULT now(),
        updated_at         timestamptz NOT NULL DEFAULT now(),
        deleted_at         timestamptz
    );
    CREATE INDEX campaigns_advertiser_id ON campaigns (advertiser_id);
"""

ASSIGNMENTS = """
    CREATE TABLE campaign_placements (
        campaign_id  integer NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
        placement_id integer NOT NULL REFERENCES placements (id) ON DELETE CASCADE,
        is_active    boolean NOT NULL DEFAULT true,
        created_at   timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (campaign_id, placement_id)
    );
    CREATE INDEX campaign_placements_placement_id ON campaign_placements (placement_id);
    CREATE TABLE banner_assignments (
        campaign_id            integer NOT NULL,
        placement_id           integer NOT NULL,
        banner_id              integer NOT NULL REFERENCES banners (id) ON DELETE CASCADE,
        display_order          integer NOT NULL DEFAULT 0 CHECK (display_order >= 0),
        weight                 integer NOT NULL DEFAULT 100 CHECK (weight >= 0),
        is_fallback            boolean NOT NULL DEFAULT false,
        fallback_priority      integer,
        is_active              boolean NOT NULL DEFAULT true,
        override_cta_label     varchar(100),
        override_cta_url       text,
        override_headline      varchar(255),
        override_subheadline   varchar(255),
        transition_duration_ms integer CHECK (transition_duration_ms >= 0),
        created_at             timestamptz NOT NULL DEFAULT now(),
        updated_at             timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (campaign_id, placement_id, banner_id),
        FOREIGN KEY (campaign_id, placement_id)
            REFERENCES campaign_placements (campaign_id, placement_id) ON DELETE CASCADE
    );
    CREATE INDEX banner_assignments_placement_id ON banner_assignments (placement_id);
    CREATE INDEX banner_assignments_banner_id ON banner_assignments (banner_id);
"""

# One row, so that its lock gives versions the order of the commits: a reader that has seen
# version n has seen every change up to n. A sequence would leave gaps that fill in later.
CHANGES = """
    CREATE TABLE catalog_version (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        version  bigint NOT NULL
    );
    INSERT INTO catalog_version (version) VALUES (0);
    CREATE TABLE catalog_changes (
        version    bigint NOT NULL,
        noun       varchar(20) NOT NULL CHECK (noun IN ('placement', 'banner', 'campaign')),
        noun_key   integer NOT NULL,
        changed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (version, noun, noun_key)
    );
"""


def upgrade() -> None:
    run(ACCOUNTS, PLACEMENTS, BANNERS, CAMPAIGNS, ASSIGNMENTS, CHANGES)
