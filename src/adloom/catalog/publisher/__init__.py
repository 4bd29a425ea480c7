"""Publishers show ads. They own sites and placements."""
