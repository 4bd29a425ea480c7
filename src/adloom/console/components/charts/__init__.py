"""Charts, bars and funnels."""
