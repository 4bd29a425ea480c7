"""What is stored about one visitor: export and erasure."""
