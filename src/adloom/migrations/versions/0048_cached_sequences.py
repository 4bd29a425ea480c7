"""Numbers of impressions and of the money ledger are taken by the thousand, which is cheaper.

A connection takes its own thousand, so the numbers have gaps and do not follow the order of the rows. A rebuild may give
some numbers of impressions twice: nothing else reads those, and no index wants them unique.
"""

from adloom.migrations.statements import run

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    run("""
        ALTER TABLE events.banner_impressions ALTER COLUMN id SET CACHE 1000;
        ALTER TABLE money_entries ALTER COLUMN id SET CACHE 1000;
    """)
