"""Second factors of people: the sealed secret of an app, and recovery codes by their hash."""

from adloom.migrations.statements import run

revision = "0036"
down_revision = "0035"

# Without `confirmed_at` it is being set up. `last_step` is that of the last code: none works twice.
FACTORS = """
    CREATE TABLE second_factors (
        user_id       integer PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
        sealed_secret bytea NOT NULL,
        confirmed_at  timestamptz,
        last_step     bigint NOT NULL DEFAULT 0
    );
"""

CODES = """
    CREATE TABLE recovery_codes (
        user_id   integer NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        code_hash bytea NOT NULL,
        PRIMARY KEY (user_id, code_hash)
    );
"""


def upgrade() -> None:
    run(FACTORS, CODES)
