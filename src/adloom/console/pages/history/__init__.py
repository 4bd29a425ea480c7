"""The history of everything."""
