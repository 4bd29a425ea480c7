"""Placements that are filled by auction, on the public path."""
