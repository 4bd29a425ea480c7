"""Manual sync: start one, and follow its jobs."""
