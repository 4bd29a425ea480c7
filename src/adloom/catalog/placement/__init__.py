"""Placements: slots on pages, each with a slug, a layout and a number of banners."""
