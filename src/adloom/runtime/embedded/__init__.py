"""PostgreSQL and Valkey from wheels, for machines without an installed server."""
