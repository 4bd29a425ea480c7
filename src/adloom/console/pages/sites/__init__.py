"""The pages of sites."""
