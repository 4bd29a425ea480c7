"""Publishers: who shows. They own sites and placements."""
