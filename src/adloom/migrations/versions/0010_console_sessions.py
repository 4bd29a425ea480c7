"""Log-ins of the console: opaque tokens of which only hashes are stored, and the links that begin a first one."""

from adloom.migrations.statements import run

revision = "0010"
down_revision = "0009"

SESSIONS = """
    CREATE TABLE console_sessions (
        token_hash bytea PRIMARY KEY,
        user_id    integer NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        began_at   timestamptz NOT NULL,
        seen_at    timestamptz NOT NULL,
        expires_at timestamptz NOT NULL
    );
    CREATE INDEX console_sessions_user_id ON console_sessions (user_id);
    CREATE INDEX console_sessions_expires_at ON console_sessions (expires_at);
"""

WELCOMES = """
    CREATE TABLE console_welcomes (
        token_hash bytea PRIMARY KEY,
        user_id    integer NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        expires_at timestamptz NOT NULL
    );
"""


def upgrade() -> None:
    run(SESSIONS, WELCOMES)
