"""What needs attention: found by looking, with what to do about it."""
