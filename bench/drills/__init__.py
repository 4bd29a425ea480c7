"""Drills: workers that share the actors are killed, frozen and cut off, as real processes, and nothing is lost."""
