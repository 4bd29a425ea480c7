"""What a publisher gets of the charges on its placements, since when."""

from alembic import op

from adloom.migrations.statements import run

revision = "0041"
down_revision = "0040"

SHARES = """
    ALTER TABLE publishers
        ADD COLUMN revenue_share_percent smallint NOT NULL DEFAULT 100
            CHECK (revenue_share_percent BETWEEN 0 AND 100);
    CREATE TABLE publisher_shares (
        publisher_id bigint NOT NULL REFERENCES publishers ON DELETE CASCADE,
        since        date NOT NULL,
        percent      smallint NOT NULL CHECK (percent BETWEEN 0 AND 100),
        PRIMARY KEY (publisher_id, since)
    );
"""
# By whoever changes it: a statement of a past month must not change with the share of today.
FUNCTION = """
    CREATE FUNCTION keep_publisher_share() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO publisher_shares (publisher_id, since, percent)
        VALUES (NEW.id, (now() AT TIME ZONE 'UTC')::date, NEW.revenue_share_percent)
        ON CONFLICT (publisher_id, since) DO UPDATE SET percent = excluded.percent;
        RETURN NULL;
    END $$
"""
TRIGGERS = """
    CREATE TRIGGER publisher_share_changed AFTER UPDATE OF revenue_share_percent ON publishers
        FOR EACH ROW WHEN (OLD.revenue_share_percent <> NEW.revenue_share_percent)
        EXECUTE FUNCTION keep_publisher_share();
    CREATE TRIGGER publisher_share_set AFTER INSERT ON publishers
        FOR EACH ROW WHEN (NEW.revenue_share_percent <> 100)
        EXECUTE FUNCTION keep_publisher_share();
"""


def upgrade() -> None:
    run(SHARES)
    op.execute(FUNCTION)
    run(TRIGGERS)
