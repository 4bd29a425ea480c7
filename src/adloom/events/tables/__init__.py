"""The event tables in PostgreSQL: applying a batch exactly once."""
