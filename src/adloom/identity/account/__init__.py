"""The accounts of people: who may log in."""
