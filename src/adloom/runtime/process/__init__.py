"""A process of our own: what it imports, how it is tuned, and what a worker does."""
