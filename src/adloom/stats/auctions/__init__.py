"""Recorded auctions with their bids, and statistics of them."""
