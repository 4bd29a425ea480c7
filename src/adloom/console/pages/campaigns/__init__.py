"""The pages of campaigns."""
