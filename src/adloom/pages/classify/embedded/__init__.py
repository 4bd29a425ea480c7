"""The classifier in the package: a page is compared with seed phrases of each category, without any training."""
