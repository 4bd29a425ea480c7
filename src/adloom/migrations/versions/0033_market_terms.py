"""Which worker leads the market: one that was suspended and wakes late writes nothing."""

from adloom.migrations.statements import run

revision = "0033"
down_revision = "0032"

TERMS = """
    CREATE TABLE market_terms (
        is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
        term    bigint NOT NULL
    );
    INSERT INTO market_terms (term) VALUES (0);
"""


def upgrade() -> None:
    run(TERMS)
