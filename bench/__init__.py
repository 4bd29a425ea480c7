"""Benchmarks: the cost of requests, as ratios within one run."""
