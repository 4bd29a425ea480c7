"""Which campaigns want which categories, told to their bidders."""
