"""User accounts: the people who may log in."""
