"""Forms, their fields and checks."""
