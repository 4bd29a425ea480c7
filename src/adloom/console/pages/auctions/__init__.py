"""Auctions: the list with statistics, and one in detail."""
