"""`adloom simulate market`: what campaigns would have, and what a change would bring."""
