"""Labels and notes of campaigns."""

from adloom.migrations.statements import run

revision = "0040"
down_revision = "0039"

LABELS = """
    ALTER TABLE campaigns
        ADD COLUMN labels varchar(50)[] NOT NULL DEFAULT '{}',
        ADD COLUMN notes text;
    CREATE INDEX campaigns_labels ON campaigns USING gin (labels);
    CREATE INDEX campaigns_notes_search ON campaigns USING gin (notes gin_trgm_ops);
"""


def upgrade() -> None:
    run(LABELS)
