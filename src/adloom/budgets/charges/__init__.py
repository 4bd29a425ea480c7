"""Turns counted events into confirms of holds: the projection `charges`."""
