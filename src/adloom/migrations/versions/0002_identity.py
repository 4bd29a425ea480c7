"""Who may log in, and with what: users, refresh tokens, API keys. Only hashes are stored."""

from adloom.migrations.statements import run

revision = "0002"
down_revision = "0001"

USERS = """
    CREATE TABLE users (
        id            serial PRIMARY KEY,
        public_id     uuid NOT NULL UNIQUE,
        email         varchar(255) NOT NULL,
        password_hash text NOT NULL,
        role          varchar(20) NOT NULL CHECK (role IN ('admin', 'viewer', 'advertiser', 'publisher')),
        account_id    uuid CHECK ((account_id IS NOT NULL) = (role IN ('advertiser', 'publisher'))),
        created_at    timestamptz NOT NULL DEFAULT now(),
        disabled_at   timestamptz
    );
    CREATE UNIQUE INDEX users_email ON users (lower(email));
"""

# A family is one log-in; each refresh replaces its token. A used token that comes again
# ends the whole family, because then two parties hold it.
REFRESH_TOKENS = """
    CREATE TABLE refresh_tokens (
        token_hash bytea PRIMARY KEY,
        family_id  uuid NOT NULL,
        user_id    integer NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        issued_at  timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        used_at    timestamptz
    );
    CREATE INDEX refresh_tokens_family_id ON refresh_tokens (family_id);
    CREATE INDEX refresh_tokens_expires_at ON refresh_tokens (expires_at);
"""

API_KEYS = """
    CREATE TABLE api_keys (
        id           serial PRIMARY KEY,
        public_id    uuid NOT NULL UNIQUE,
        name         varchar(255) NOT NULL,
        key_hash     bytea NOT NULL UNIQUE,
        key_hint     varchar(16) NOT NULL,
        role         varchar(20) NOT NULL CHECK (role IN ('admin', 'viewer', 'advertiser', 'publisher')),
        account_id   uuid CHECK ((account_id IS NOT NULL) = (role IN ('advertiser', 'publisher'))),
        created_at   timestamptz NOT NULL DEFAULT now(),
        revoked_at   timestamptz
    );
"""


def upgrade() -> None:
    run(USERS, REFRESH_TOKENS, API_KEYS)
