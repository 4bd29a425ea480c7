"""The monthly statement of a publisher."""
