"""Targeting rules: which visitors see a campaign."""
