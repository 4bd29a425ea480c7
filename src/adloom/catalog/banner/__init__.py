"""Banners: creatives with an image, a text and a call to action."""
