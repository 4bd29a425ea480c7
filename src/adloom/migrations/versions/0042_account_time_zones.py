"""The time zone of a person's account."""

from adloom.migrations.statements import run

revision = "0042"
down_revision = "0041"

# None until it is chosen: then reports have days of UTC, and calendars the zone of what they show.
TIME_ZONES = "ALTER TABLE users ADD COLUMN time_zone varchar(64)"


def upgrade() -> None:
    run(TIME_ZONES)
