"""Contextual auctions: who bids on which category, what a page is worth to them, and the shortlists that follow."""
