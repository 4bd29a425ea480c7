"""What the pages of sites are about: addresses, crawls, text, classification."""
