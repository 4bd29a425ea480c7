"""Simulated markets, and what a change of a campaign would bring: real decisions, leases and budgets on virtual time."""
