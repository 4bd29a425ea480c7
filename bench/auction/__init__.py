"""The cost of auctions, and a check that they are right: `python -m bench.auction`."""
