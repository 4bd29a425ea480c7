"""Advertisers pay. They own campaigns and banners, and may block sites."""
