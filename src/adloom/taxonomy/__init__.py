"""IAB's taxonomies of content and of ad products: names, paths, ancestors and descendants."""
