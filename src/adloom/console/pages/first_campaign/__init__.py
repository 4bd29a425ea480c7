"""The guide to the first campaign: from nothing to an ad on a page."""
