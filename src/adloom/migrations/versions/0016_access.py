"""Access that can be taken back: epochs of tokens, owners and ends of keys, issued tokens, networks of log-ins."""

from adloom.migrations.statements import run

revision = "0016"
down_revision = "0015"

# A token names the epoch it was signed in; a new password or role, or disabling, begins the next one.
USERS = """
    ALTER TABLE users ADD COLUMN token_epoch integer NOT NULL DEFAULT 0;
    ALTER TABLE users ADD COLUMN must_change_password boolean NOT NULL DEFAULT false;
"""

# When the log-in began that a token continues: it ends at last, however often it is refreshed.
REFRESH_TOKENS = """
    ALTER TABLE refresh_tokens ADD COLUMN began_at timestamptz;
    UPDATE refresh_tokens SET began_at = issued_at;
    ALTER TABLE refresh_tokens ALTER COLUMN began_at SET NOT NULL;
    CREATE INDEX refresh_tokens_user_id ON refresh_tokens (user_id);
"""

# Keys from before have no owner and no end.
API_KEYS = """
    ALTER TABLE api_keys ADD COLUMN owner_id uuid;
    ALTER TABLE api_keys ADD COLUMN expires_at timestamptz;
    ALTER TABLE api_keys ADD COLUMN last_used_at timestamptz;
    CREATE INDEX api_keys_owner_id ON api_keys (owner_id) WHERE owner_id IS NOT NULL;
"""

# Tokens that belong to no person: those of the command line. One is written down when it is made or first used.
ACCESS_TOKENS = """
    CREATE TABLE access_tokens (
        id           bigserial PRIMARY KEY,
        public_id    uuid NOT NULL UNIQUE,
        subject      varchar(255) NOT NULL,
        role         varchar(20) NOT NULL,
        account_id   uuid,
        issued_at    timestamptz NOT NULL,
        expires_at   timestamptz NOT NULL,
        last_used_at timestamptz,
        revoked_at   timestamptz
    );
    CREATE INDEX access_tokens_expires_at ON access_tokens (expires_at);
"""

# From where a person has logged in before: failures from elsewhere do not keep them out.
NETWORKS = """
    CREATE TABLE user_networks (
        user_id integer NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        network varchar(50) NOT NULL,
        seen_at timestamptz NOT NULL,
        PRIMARY KEY (user_id, network)
    );
    ALTER TABLE audit_entries ADD COLUMN network varchar(50);
"""


def upgrade() -> None:
    run(USERS, REFRESH_TOKENS, API_KEYS, ACCESS_TOKENS, NETWORKS)
