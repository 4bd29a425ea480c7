"""Taking events in: decode, verify the token, detect invalid traffic, append."""
