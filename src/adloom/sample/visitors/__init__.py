"""Simulated visitors of the sample: how many come when, what they see and click."""
