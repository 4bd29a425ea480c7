"""The bids of a market in scan order: top bids, CTR ranking, scan plan."""
