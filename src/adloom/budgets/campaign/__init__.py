"""A campaign's budget: its state and its pure step."""
