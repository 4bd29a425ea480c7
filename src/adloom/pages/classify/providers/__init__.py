"""Language models of others, by choice: the same question to each, and the embedded classifier when they do not answer."""
