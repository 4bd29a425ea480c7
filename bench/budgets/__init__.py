"""The cost of budgets: charging, bids, and 100,000 idle ones."""
