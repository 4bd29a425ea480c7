"""The site actor: publishes a site's settings and its pages' categories to the market."""
