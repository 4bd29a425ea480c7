"""Servers with a standby: which PostgreSQL takes writes now, and which Valkey is the primary."""
