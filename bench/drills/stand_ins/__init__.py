"""Servers with a stand-in: a PostgreSQL with a standby, a Valkey with a replica and sentinels."""
