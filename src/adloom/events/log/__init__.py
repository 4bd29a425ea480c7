"""The event log: events, group commit, the Valkey stream, and the spool on disk."""
