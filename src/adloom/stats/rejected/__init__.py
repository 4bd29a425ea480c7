"""Events that were counted and are kept out of billing and learning: which, and why."""
