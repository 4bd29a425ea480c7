"""The figures of the console's first page."""
