"""A market in a file that people write."""
