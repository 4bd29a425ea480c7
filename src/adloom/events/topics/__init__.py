"""What happened, for programs of others: streams with a schema each."""
