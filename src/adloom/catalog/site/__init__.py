"""Sites: domains, how they are crawled, and what may be shown on their pages."""
