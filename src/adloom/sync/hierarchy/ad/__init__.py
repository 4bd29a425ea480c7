"""Ads of ad sets."""
