"""Whether the tag of a placement is on a page."""
