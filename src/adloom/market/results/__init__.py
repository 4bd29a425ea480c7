"""How ads do in contextual slots, counted from the event log: by creative for delivery, by category for rankers."""
