"""Budgets on virtual time: the real actors, host and leases, over a lossy transport and with crashes."""
