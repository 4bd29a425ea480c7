"""What happens on a site, as it happens: crawls, pages and approvals as server-sent events."""
