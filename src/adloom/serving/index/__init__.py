"""The catalog compiled into an immutable in-memory index."""
