"""What budgets cost: serving with them, charging, and holding a hundred thousand of them that nobody uses."""
