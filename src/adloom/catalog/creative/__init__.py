"""Creatives: the banners that a campaign shows in contextual slots."""
