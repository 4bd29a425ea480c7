"""Backups: PostgreSQL, Valkey and the spool of one installation in one archive, and back."""
