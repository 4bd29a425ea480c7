"""What a worker does, of all that workers do."""
