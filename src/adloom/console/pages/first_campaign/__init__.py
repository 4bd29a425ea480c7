"""The guided path: from nothing to an ad on a page."""
