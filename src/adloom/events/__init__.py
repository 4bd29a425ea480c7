"""Everything that happened, appended once: tokens of offers, events, the stream, what is folded from it."""
