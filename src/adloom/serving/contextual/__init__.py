"""Ads by what a page says: what is known of the page that asks, and the text of one that is not known."""
