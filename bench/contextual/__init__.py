"""Benches of contextual delivery: requests for slots, auctions of sites, and how soon changes are seen."""
