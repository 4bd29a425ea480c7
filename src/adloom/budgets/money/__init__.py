"""The money ledger in PostgreSQL, and its reconciliation."""
