"""Pages of a site in memory: read once, then kept up to date by version."""
