"""What budgets have left: read at any moment, or followed as it changes."""
