"""What happens on a site, as it happens: crawls and pages as server-sent events."""
