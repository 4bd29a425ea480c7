"""The pages of placements."""
