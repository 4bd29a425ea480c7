"""How well a category does on a site."""
