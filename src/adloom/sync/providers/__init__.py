"""Providers of statistics: one per platform, behind one protocol."""
