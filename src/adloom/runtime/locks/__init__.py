"""Which of several workers does a piece of work."""
