"""How often a user was shown a banner, in each of the windows that a cap may have."""
