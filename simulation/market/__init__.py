"""The contextual market on virtual time: its actors over a network that drops, repeats, reorders and restarts."""
