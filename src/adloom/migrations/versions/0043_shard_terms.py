"""Which worker writes for the actors of a shard that have no stored states: one that wakes late writes nothing."""

from adloom.migrations.statements import run

revision = "0043"
down_revision = "0042"

TERMS = """
    CREATE TABLE brain_shard_terms (
        shard smallint PRIMARY KEY CHECK (shard BETWEEN 0 AND 99),
        term  bigint NOT NULL
    );
"""


def upgrade() -> None:
    run(TERMS)
