"""Learned scoring: what is learned so far, and the impressions of which it is not yet known whether they are clicked."""

from adloom.migrations.statements import run

revision = "0008"
down_revision = "0007"

# `version` fences out a second learner: whoever writes names the version that it read. What waits lies in
# pieces, one a batch of the ledger, each with the moment from which on it can be learned from; it is
# taken out in the transaction that keeps what was learned from it. Both are compressed already.
LEARNING = """
    CREATE TABLE learning_states (
        name       varchar(30) COLLATE "C" PRIMARY KEY,
        version    bigint NOT NULL CHECK (version > 0),
        state      bytea NOT NULL,
        learned_at timestamptz NOT NULL
    );
    ALTER TABLE learning_states ALTER COLUMN state SET STORAGE EXTERNAL;
    CREATE TABLE learning_waiting (
        id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        due_at   timestamptz NOT NULL,
        examples bytea NOT NULL
    );
    CREATE INDEX learning_waiting_due ON learning_waiting (due_at, id);
"""


def upgrade() -> None:
    run(LEARNING)
