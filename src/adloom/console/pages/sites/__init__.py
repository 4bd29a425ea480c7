"""The pages of sites: verification, crawls, and what their pages are about."""
