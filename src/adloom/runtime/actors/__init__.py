"""Runs any pure step: mailboxes, shards, states in PostgreSQL, timers. No domain."""
