"""What budgets have left: read at any moment, or streamed as it changes."""
