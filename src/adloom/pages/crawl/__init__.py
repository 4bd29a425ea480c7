"""Crawls: the pages of a site are found, fetched politely, and handed to the classifier."""
