"""Messages between delivery processes and budgets, over Valkey."""
