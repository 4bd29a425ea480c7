"""The ads of a placement with their numbers, for its publisher."""
