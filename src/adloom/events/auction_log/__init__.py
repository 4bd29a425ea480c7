"""The auction log: recorded auctions as rows that people read."""
