"""Advertisers: who pays. They own campaigns and banners, and may not want to be seen everywhere."""
