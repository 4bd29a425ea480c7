"""What the auctions of each hour come to: nobody reads millions of them again for a total."""

from alembic import op

from adloom.migrations.statements import run

revision = "0011"
down_revision = "0010"

# Only whole hours of UTC, and of a day that is kept.
HOURS = """
    CREATE TABLE auction.hours (
        hour           timestamptz NOT NULL,
        placement_type varchar(50) NOT NULL,
        auctions       bigint NOT NULL,
        wins           bigint NOT NULL,
        ecpm_sum       numeric NOT NULL,
        bids           bigint NOT NULL,
        CONSTRAINT hours_pkey PRIMARY KEY (hour, placement_type)
    ) WITH (fillfactor = 50);
    LOCK TABLE auction.auctions IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO auction.hours
    SELECT date_bin('1 hour', auction_time, 'epoch'), placement_type, count(*), count(winning_campaign_id),
           coalesce(sum(winning_ecpm), 0), sum(bid_count)
      FROM auction.auctions GROUP BY 1, 2;
"""

# Whoever inserts auctions, the hours agree with them in the same moment; one that is told twice is not inserted.
COUNTING = """
    CREATE FUNCTION count_auctions_by_hour() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO auction.hours AS known
        SELECT date_bin('1 hour', auction_time, 'epoch'), placement_type, count(*), count(winning_campaign_id),
               coalesce(sum(winning_ecpm), 0), sum(bid_count)
          FROM inserted GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (hour, placement_type) DO UPDATE
           SET auctions = known.auctions + excluded.auctions, wins = known.wins + excluded.wins,
               ecpm_sum = known.ecpm_sum + excluded.ecpm_sum, bids = known.bids + excluded.bids;
        RETURN NULL;
    END $$
"""
COUNTED = """
    CREATE TRIGGER auctions_are_counted AFTER INSERT ON auction.auctions
        REFERENCING NEW TABLE AS inserted
        FOR EACH STATEMENT EXECUTE FUNCTION count_auctions_by_hour()
"""


def upgrade() -> None:
    run(HOURS)
    op.execute(COUNTING)
    op.execute(COUNTED)
