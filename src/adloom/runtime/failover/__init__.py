"""Servers with a stand-in: which PostgreSQL takes writes now, and which Valkey is the primary."""
