"""Direct delivery: decide, reserve, encode, and the routes around them."""
