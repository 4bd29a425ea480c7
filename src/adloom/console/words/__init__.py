"""Words of the console that need no page: of fields, and of what campaigns do."""
