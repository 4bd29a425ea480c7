"""An erased user leaves no id anywhere: neither in the list of erased users nor in the names of events."""

from adloom.migrations.statements import run

revision = "0012"
down_revision = "0011"

# `erased_entries` are entries of the log that name erased users; they go when all projections have applied them.
ERASED = """
    ALTER TABLE erased_users ADD COLUMN user_digest bytea;
    UPDATE erased_users SET user_digest = substring(sha256(uuid_send(user_id)) FOR 16);
    ALTER TABLE erased_users DROP COLUMN user_id;
    ALTER TABLE erased_users ADD PRIMARY KEY (user_digest);
    CREATE TABLE erased_entries (
        entry_ms  bigint NOT NULL,
        entry_seq bigint NOT NULL,
        PRIMARY KEY (entry_ms, entry_seq)
    );
"""

# The same as in `adloom.events.log.names`, so that a name that comes again is known.
_HIDE = """
    UPDATE events.{table}
       SET correlation_id = 'h:' || encode(sha256(convert_to(correlation_id, 'UTF8')), 'hex')
     WHERE request_id IS NULL
       AND (correlation_id ~ '^ad:[0-9a-f-]{{36}}:[0-9a-f-]{{36}}:'
            OR position(replace(user_id::text, '-', '') IN replace(lower(correlation_id), '-', '')) > 0);
"""
NAMES = _HIDE.format(table="banner_impressions") + _HIDE.format(table="banner_clicks")


def upgrade() -> None:
    run(ERASED, NAMES)
