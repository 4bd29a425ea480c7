"""What budgets know of the catalog."""
