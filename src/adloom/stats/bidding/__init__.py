"""How a campaign's bids are multiplied, and why."""
