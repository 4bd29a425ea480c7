"""The cost of budgets: serving with them, charging, and 100,000 idle ones."""
