"""Messages to actors on several machines: which were applied, and which wait to be sent."""

from adloom.migrations.statements import run

revision = "0038"
down_revision = "0037"

# An id begins with the time at which it was made, so ranges of ids are days; the worker makes and drops them. `reply` is
# what was answered, for a sender that has not heard it.
MESSAGES = """
    CREATE TABLE brain_applied (
        id    uuid NOT NULL PRIMARY KEY,
        shard smallint NOT NULL CHECK (shard BETWEEN 0 AND 99),
        reply bytea
    ) PARTITION BY RANGE (id);
    CREATE TABLE brain_outbox (
        id      uuid NOT NULL PRIMARY KEY,
        shard   smallint NOT NULL CHECK (shard BETWEEN 0 AND 99),
        at      timestamptz NOT NULL,
        message bytea NOT NULL
    );
"""


def upgrade() -> None:
    run(MESSAGES)
