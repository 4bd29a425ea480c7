"""Topics: streams of events for other programs, each with a schema."""
