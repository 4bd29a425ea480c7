"""Tokens that belong to no person: those that `adloom token` prints."""
