"""Syncing by hand: asking for it, and following its jobs."""
