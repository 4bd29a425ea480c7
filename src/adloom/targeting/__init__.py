"""Who an ad is for: rules, their evaluation, and the same compiled to bitmaps. Pure."""
