"""The cost of auctions: of decisions alone, and over HTTP."""
