"""People who log in by OpenID Connect: known by the provider and its name of them."""

from adloom.migrations.statements import run

revision = "0037"
down_revision = "0036"

USERS = """
    ALTER TABLE users ADD COLUMN oidc_issuer text;
    ALTER TABLE users ADD COLUMN oidc_subject text;
    CREATE UNIQUE INDEX users_oidc ON users (oidc_issuer, oidc_subject) WHERE oidc_subject IS NOT NULL;
"""


def upgrade() -> None:
    run(USERS)
