"""Budgets on virtual time: the real budget actors, their host and the real leases, over a lossy mail and with crashes."""
