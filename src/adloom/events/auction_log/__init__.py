"""The auctions that were held, as rows that people read."""
