"""A process of our own: what it imports, and how it is tuned."""
