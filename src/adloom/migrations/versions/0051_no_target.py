"""A target of nothing was read as none, and is refused now."""

from adloom.migrations.statements import run

revision = "0051"
down_revision = "0050"

TARGETS = "UPDATE campaigns SET target_cpa_micros = NULL WHERE target_cpa_micros = 0"


def upgrade() -> None:
    run(TARGETS)
