"""How people log in: the settings of it."""
