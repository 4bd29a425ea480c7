"""Consent of publishers: what an account asks for waits for a decision. What was there before is accepted."""

from adloom.migrations.statements import run

revision = "0014"
down_revision = "0013"

PLACEMENTS = "ALTER TABLE placements ADD COLUMN is_open boolean NOT NULL DEFAULT false"
LINKS = """
    ALTER TABLE campaign_placements
        ADD COLUMN state varchar(20) NOT NULL DEFAULT 'accepted'
            CHECK (state IN ('requested', 'accepted', 'refused')),
        ADD COLUMN reason text,
        ADD COLUMN is_asked_for boolean NOT NULL DEFAULT false;
    CREATE INDEX campaign_placements_requested ON campaign_placements (placement_id) WHERE state = 'requested';
    ALTER TABLE banner_assignments
        ADD COLUMN is_refused boolean NOT NULL DEFAULT false,
        ADD COLUMN reason text;
"""
# Three digits are a colour too.
COLORS = """
    ALTER TABLE banners DROP CONSTRAINT banners_bg_color_check;
    ALTER TABLE banners
        ADD CONSTRAINT banners_bg_color_check CHECK (bg_color ~ '^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$');
"""
# Without a publishAt they were published at once.
SCHEDULES = """
    UPDATE banners SET schedule_status = 'active' WHERE schedule_status = 'scheduled' AND publish_at IS NULL
"""


def upgrade() -> None:
    run(PLACEMENTS, LINKS, COLORS, SCHEDULES)
