"""How a site's traffic comes, and how the campaigns on it follow it."""
