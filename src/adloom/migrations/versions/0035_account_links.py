"""People who choose their password by a link that works once; until then they have none."""

from adloom.migrations.statements import run

revision = "0035"
down_revision = "0034"

USERS = "ALTER TABLE users ALTER COLUMN password_hash DROP NOT NULL;"

LINKS = """
    CREATE TABLE account_links (
        token_hash bytea PRIMARY KEY,
        user_id    integer NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        expires_at timestamptz NOT NULL
    );
    CREATE INDEX account_links_user_id ON account_links (user_id);
    CREATE INDEX account_links_expires_at ON account_links (expires_at);
"""


def upgrade() -> None:
    run(USERS, LINKS)
