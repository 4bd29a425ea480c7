"""Sites: domains with pages, on which placements are."""
