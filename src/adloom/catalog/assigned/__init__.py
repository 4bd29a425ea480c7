"""What is shown where, over all campaigns."""
