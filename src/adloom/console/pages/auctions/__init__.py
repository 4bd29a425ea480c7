"""Auctions on record: all of them, and one in detail."""
