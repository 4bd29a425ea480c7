"""Invalid-traffic detection: crawlers, prefetches, data centres, floods."""
