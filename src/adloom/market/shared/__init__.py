"""The market on several machines: what its actors read where they run, and what one worker tells them."""
