"""Which candidates may be offered now: schedules, caps, exclusions, as bitmaps."""
