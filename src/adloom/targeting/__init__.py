"""Targeting: rules, their evaluation, and the same compiled to bitmaps. Pure."""
