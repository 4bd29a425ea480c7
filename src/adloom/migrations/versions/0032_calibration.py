"""How well predicted click rates agree with clicks, beside what is learned from them."""

from adloom.migrations.statements import run

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    run("ALTER TABLE learning_states ADD COLUMN calibration jsonb")
