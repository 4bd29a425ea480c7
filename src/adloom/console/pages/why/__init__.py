"""The explanation of a decision, and of a campaign that does not deliver."""
