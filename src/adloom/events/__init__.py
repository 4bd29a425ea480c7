"""Everything that happened, appended once: tokens of offers, events, the stream, what is counted from it."""
