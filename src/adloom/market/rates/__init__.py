"""What categories are worth: how many pages they have, and what campaigns bid for them."""
