"""The figures of the first page: how everything goes, now and over time."""
