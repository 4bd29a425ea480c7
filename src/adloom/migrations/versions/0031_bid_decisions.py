"""What bid strategies decided for campaigns, window by window; without keys to the catalog, which actors outlive."""

from adloom.migrations.statements import run

revision = "0031"
down_revision = "0030"

DECISIONS = """
    CREATE TABLE bid_decisions (
        campaign_id  uuid NOT NULL,
        day          date NOT NULL,
        at           timestamptz NOT NULL,
        bid_window   integer NOT NULL,
        strategy     text NOT NULL,
        multiplier   double precision NOT NULL,
        wanted       double precision NOT NULL,
        reason       text NOT NULL,
        guard_limit  double precision,
        note         text,
        spent_micros bigint NOT NULL,
        impressions  bigint NOT NULL,
        clicks       bigint NOT NULL,
        conversions  bigint NOT NULL,
        shadows      jsonb NOT NULL,
        PRIMARY KEY (campaign_id, at)
    );
"""


def upgrade() -> None:
    run(DECISIONS)
