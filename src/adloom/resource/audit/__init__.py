"""The trail of the catalog's changes: who changed what, when, from what to what."""
