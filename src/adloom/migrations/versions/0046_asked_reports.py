"""E-mails of saved reports that somebody has asked for now."""

from adloom.migrations.statements import run

revision = "0046"
down_revision = "0045"

# One row each time that somebody asks. It is begun once, as those of `report_sendings`, which it does not touch: a report
# that is sent now is still sent when it is due.
REQUESTS = """
    CREATE TABLE report_requests (
        id        uuid PRIMARY KEY,
        report_id integer NOT NULL REFERENCES saved_reports (id) ON DELETE CASCADE,
        asked_at  timestamptz NOT NULL,
        begun_at  timestamptz,
        sent_at   timestamptz,
        failure   text
    );
    CREATE INDEX report_requests_asked ON report_requests (report_id, asked_at);
"""


def upgrade() -> None:
    run(REQUESTS)
