"""Figures of placements: for their publishers, and for those who want to buy them."""
