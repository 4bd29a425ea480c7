"""Alembic's entry: apply the versions over the connection that `runtime.migrate` hands in."""

from alembic import context

given = context.config.attributes
# A commit waits for the disk, and of a new schema only the last one is worth it.
context.configure(connection=given["connection"], transaction_per_migration=not given.get("is_empty", False))
with context.begin_transaction():
    context.run_migrations()
