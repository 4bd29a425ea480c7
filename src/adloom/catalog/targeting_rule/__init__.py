"""Targeting rules: to whom a campaign is shown."""
