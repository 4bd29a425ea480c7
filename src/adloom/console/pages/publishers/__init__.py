"""The pages of publishers."""
