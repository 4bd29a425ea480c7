"""Frequency caps: how often a banner may be shown to one reader."""
