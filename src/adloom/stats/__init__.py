"""Statistics and rollups: what the event tables' counts add up to."""
