"""Daily budgets and how far they are used, campaign by campaign; and opening a new daily window."""
