"""Turns counted events into confirms of holds. Commands and metrics call this projection `charges`."""
