"""Budgets: how they stand, and how a day goes."""
