"""Campaigns: a purpose with dates and a status, and the moves between statuses."""
