"""Auctions that were held: each with its bids, and what they come to."""
