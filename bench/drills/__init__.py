"""Drills: kill, freeze and cut off real worker processes that share the actors, and check that nothing is lost."""
