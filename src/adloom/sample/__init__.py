"""The sample of a first start: a small magazine and shop, with ads and simulated visitors."""
