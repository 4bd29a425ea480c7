"""Every string that the console shows, by page."""
