"""Whose a site is: proven by a file on it, and proven again from time to time."""
