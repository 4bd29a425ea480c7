"""Budgets on virtual time: the real brains, their host and the real leases, over a lossy mail and with crashes."""
