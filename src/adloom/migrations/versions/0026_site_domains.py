"""A domain may be claimed by several accounts, and is of the one that has proven it."""

from adloom.migrations.statements import run

revision = "0026"
down_revision = "0025"

DOMAINS = """
    ALTER TABLE sites DROP CONSTRAINT sites_domain_key;
    CREATE UNIQUE INDEX sites_domain_of_publisher ON sites (domain, coalesce(publisher_id, 0));
    CREATE UNIQUE INDEX sites_verified_domain ON sites (domain) WHERE verified_at IS NOT NULL;
"""


def upgrade() -> None:
    run(DOMAINS)
