"""The bids of one category, for the sites of one stripe."""
