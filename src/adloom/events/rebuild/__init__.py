"""Rebuilding the event tables from the log, beside those in use."""
