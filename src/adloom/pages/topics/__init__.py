"""What a whole site is about: its pages, counted by category."""
