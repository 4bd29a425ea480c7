"""Projections: consumers that apply the event log to tables and counters, each with its own cursor."""
