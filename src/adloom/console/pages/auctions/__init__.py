"""Auctions: live, summed up, and one in full."""
