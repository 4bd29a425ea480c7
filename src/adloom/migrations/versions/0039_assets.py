"""Files that people upload for their banners."""

from adloom.migrations.statements import run

revision = "0039"
down_revision = "0038"

# The bytes are in the store of files, by their hash; two accounts may have the same. `keys` are all its files, `used_at`
# is when a banner or a placement was last seen to show it.
ASSETS = """
    CREATE TABLE assets (
        id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        public_id     uuid NOT NULL UNIQUE,
        advertiser_id integer REFERENCES advertisers (id),
        name          varchar(255) NOT NULL,
        kind          varchar(20) NOT NULL CHECK (kind IN ('image', 'video', 'html')),
        mime          varchar(100) NOT NULL,
        size          bigint NOT NULL CHECK (size > 0),
        width         integer CHECK (width > 0),
        height        integer CHECK (height > 0),
        sha256        varchar(64) NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
        keys          text[] NOT NULL CHECK (cardinality(keys) > 0),
        variants      jsonb NOT NULL DEFAULT '{}',
        created_at    timestamptz NOT NULL,
        used_at       timestamptz NOT NULL,
        UNIQUE NULLS NOT DISTINCT (advertiser_id, sha256)
    );
    CREATE INDEX assets_sha256 ON assets (sha256);
    CREATE INDEX assets_used_at ON assets (used_at);
"""


def upgrade() -> None:
    run(ASSETS)
