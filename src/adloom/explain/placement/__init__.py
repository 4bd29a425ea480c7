"""Why each candidate of a placement was or was not offered."""
