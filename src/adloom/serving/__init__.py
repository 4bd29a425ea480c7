"""The public path: an immutable index, a pure decision over it, and the routes around them."""
