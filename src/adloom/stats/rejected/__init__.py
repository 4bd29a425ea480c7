"""Events that count but are kept out of billing and learning, and why."""
