"""How far daily budgets are used, campaign by campaign, and opening a new daily window."""
