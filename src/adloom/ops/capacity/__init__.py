"""How many machines an installation needs, computed from what this version costs on a measured machine."""
