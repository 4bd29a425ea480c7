"""The auctions of one site: pages, categories, shortlists."""
