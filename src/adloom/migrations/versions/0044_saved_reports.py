"""Saved reports of people, and their e-mails."""

from adloom.migrations.statements import run

revision = "0044"
down_revision = "0043"

# Filters are ids of any time: what they name may be deleted, and its figures stay. `scheduled_at` is when the schedule
# was set: what was due before is not sent.
REPORTS = """
    CREATE TABLE saved_reports (
        id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        public_id    uuid NOT NULL UNIQUE,
        owner_id     integer NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        name         varchar(255) NOT NULL,
        group_by     varchar(20)[] NOT NULL CHECK (cardinality(group_by) > 0),
        period       varchar(20) NOT NULL,
        is_compared  boolean NOT NULL,
        campaign_id  uuid,
        placement_id uuid,
        banner_id    uuid,
        country      varchar(20),
        device       varchar(20),
        columns      varchar(20)[] NOT NULL,
        metric       varchar(20) NOT NULL,
        time_zone    varchar(64),
        send_every   varchar(20),
        send_weekday smallint NOT NULL CHECK (send_weekday BETWEEN 1 AND 7),
        send_hour    smallint NOT NULL CHECK (send_hour BETWEEN 0 AND 23),
        recipients   varchar(255)[] NOT NULL,
        scheduled_at timestamptz NOT NULL,
        created_at   timestamptz NOT NULL,
        updated_at   timestamptz NOT NULL
    );
    CREATE UNIQUE INDEX saved_reports_name ON saved_reports (owner_id, lower(name));
    CREATE INDEX saved_reports_scheduled ON saved_reports (id) WHERE send_every IS NOT NULL;
"""

# One row a day on which a report was due, in its owner's zone. It is begun once: with `begun_at` and without `sent_at` it
# is not known whether the server has taken it.
SENDINGS = """
    CREATE TABLE report_sendings (
        report_id integer NOT NULL REFERENCES saved_reports (id) ON DELETE CASCADE,
        due_on    date NOT NULL,
        begun_at  timestamptz,
        sent_at   timestamptz,
        failure   text,
        PRIMARY KEY (report_id, due_on)
    );
"""


def upgrade() -> None:
    run(REPORTS, SENDINGS)
