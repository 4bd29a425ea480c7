"""Something to look at on the first start: a small magazine page with the ads of a small shop."""
