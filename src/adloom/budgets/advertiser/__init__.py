"""An advertiser's daily budget: its state and its pure step."""
