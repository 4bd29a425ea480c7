"""Auctions of contextual slots have the page that they were held for."""

from adloom.migrations.statements import run

revision = "0029"
down_revision = "0028"

# Other auctions are of no page, so the index is small. Its days are made with it.
PAGES = """
    ALTER TABLE auction.auctions ADD COLUMN page_url varchar(2048);
    CREATE INDEX ix_auctions_page_url ON auction.auctions (page_url, auction_time) WHERE page_url IS NOT NULL;
"""


def upgrade() -> None:
    run(PAGES)
