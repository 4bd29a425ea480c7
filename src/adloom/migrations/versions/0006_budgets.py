"""Brains: the state of entities, who holds leases of budgets, and every movement of money."""

from adloom.migrations.statements import run

revision = "0006"
down_revision = "0005"

# `version` fences out a second owner: whoever writes names the version that it read. `format` is
# that of the encoding; `wake_at` is the entity's timer, so that one survives a restart of its host,
# which reads them all. Rows are written again with every batch: with room on their pages, and no index
# of what changes, that leaves nothing behind.
ENTITIES = """
    CREATE TABLE brain_states (
        kind       varchar(30) COLLATE "C" NOT NULL,
        key        varchar(200) COLLATE "C" NOT NULL,
        shard      smallint NOT NULL CHECK (shard BETWEEN 0 AND 99),
        version    bigint NOT NULL CHECK (version > 0),
        format     smallint NOT NULL,
        state      bytea NOT NULL,
        wake_at    timestamptz,
        changed_at timestamptz NOT NULL,
        PRIMARY KEY (kind, key)
    ) WITH (fillfactor = 50);
    CREATE TABLE brain_sessions (
        session   bigint PRIMARY KEY,
        process   varchar(200) NOT NULL,
        opened_at timestamptz NOT NULL,
        ended_at  timestamptz
    );
    CREATE TABLE brain_leases (
        session bigint NOT NULL,
        key     varchar(200) NOT NULL,
        PRIMARY KEY (session, key)
    );
"""

# Nothing here is ever changed. A confirmed offer is there once, charged or unbilled.
MONEY = """
    CREATE TABLE money_entries (
        id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind          varchar(20) NOT NULL CHECK (kind IN ('charge', 'release', 'unbilled')),
        campaign_id   uuid NOT NULL,
        advertiser_id uuid,
        day           date NOT NULL,
        budget_window integer NOT NULL,
        amount_micros bigint NOT NULL CHECK (amount_micros >= 0),
        at            timestamptz NOT NULL,
        lease         bigint NOT NULL,
        second        bigint NOT NULL,
        request_id    uuid,
        slot          smallint,
        confirmed_by  varchar(20),
        banner_id     uuid,
        placement_id  uuid,
        CHECK ((kind = 'release') = (request_id IS NULL)),
        CHECK ((request_id IS NULL) = (slot IS NULL))
    );
    CREATE UNIQUE INDEX money_entries_offer ON money_entries (request_id, slot) WHERE request_id IS NOT NULL;
    CREATE INDEX money_entries_day ON money_entries (day, campaign_id);
    CREATE TABLE spend_days (
        kind         varchar(20) NOT NULL CHECK (kind IN ('campaign', 'advertiser')),
        id           uuid NOT NULL,
        day          date NOT NULL,
        spent_micros bigint NOT NULL CHECK (spent_micros >= 0),
        PRIMARY KEY (kind, id, day)
    ) WITH (fillfactor = 50);
    CREATE INDEX spend_days_day ON spend_days (day);
"""

# Charges by the hour of UTC in which they were made, for statistics: added to in the transaction that
# writes the entries. What a day was rolled up from is exact to the micro.
STATISTICS = """
    CREATE TABLE spend_hours (
        hour         timestamptz NOT NULL,
        banner_id    integer NOT NULL,
        placement_id integer NOT NULL,
        campaign_id  integer NOT NULL,
        charges      bigint NOT NULL CHECK (charges >= 0),
        spent_micros bigint NOT NULL CHECK (spent_micros >= 0),
        PRIMARY KEY (hour, banner_id, placement_id, campaign_id)
    ) WITH (fillfactor = 50);
    CREATE INDEX spend_hours_campaign_id ON spend_hours (campaign_id, hour);
    ALTER TABLE banner_stats ADD COLUMN spend_micros bigint NOT NULL DEFAULT 0 CHECK (spend_micros >= 0);
"""

# A budget of an advertiser is no part of the index, but brains hear of it.
CHANGES = """
    ALTER TABLE catalog_changes
        DROP CONSTRAINT catalog_changes_noun_check,
        ADD CONSTRAINT catalog_changes_noun_check
            CHECK (noun IN ('placement', 'banner', 'campaign', 'advertiser'));
"""


def upgrade() -> None:
    run(ENTITIES, MONEY, STATISTICS, CHANGES)
