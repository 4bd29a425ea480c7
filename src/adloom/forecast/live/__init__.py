"""A copy of the running installation to simulate: its catalog, and its traffic of the last seven days."""
