"""Campaigns of ad accounts."""
