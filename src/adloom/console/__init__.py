"""The console: pages for people, built on the admin API."""
