"""Drill 12: the same messages to actors of all kinds, on the host in one process and on the one on NATS."""
