"""Brains: entities that own money, one step at a time. Steps are pure; who runs them is not known here."""
