"""The trail of the catalog's changes, as people read it."""
