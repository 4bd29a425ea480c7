"""The console: pages for people, made of what the admin API tells and takes."""
